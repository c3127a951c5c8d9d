/** Steps of a dump that belong to a step of a monitored run. */

/** A dump that an anomaly starts begins when its numbers have come to the host: some tens of steps later. */
const LATER = 50;

/** The step itself where it was dumped, else the first one soon after it; null where there is none. */
export function dumpedFrom(steps: readonly number[], step: number): number | null {
  const after = steps.filter((one) => one >= step && one <= step + LATER);
  return after.length === 0 ? null : Math.min(...after);
}
