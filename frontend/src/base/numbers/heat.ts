/** Colour of an error in a map: from the floor to ten thousand floors, by its logarithm. */

const DEEPEST = 4;

/** 0 at the floor or below, 1 from ten thousand floors on and for what is outside every tolerance. score: in floors */
export function heatOf(score: number | string | null): number {
  const size = typeof score === "string" ? Number.POSITIVE_INFINITY : (score ?? 0);
  return size <= 1 ? 0 : Math.min(1, Math.log10(size) / DEEPEST);
}
