/** Which dumps are likely to be of the same program, by what is known of them before anything is compared. */

export interface DumpOutline {
  framework: string | null;
  task: string | null;
  level: string | null;
  nodes: number;
}

/** How unlike two dumps are: framework, then number of calls, then level and task. */
function distance(one: DumpOutline, other: DumpOutline): number {
  const apart = (key: "framework" | "task" | "level") => (one[key] === other[key] ? 0 : 1);
  const most = Math.max(one.nodes, other.nodes);
  const share = most === 0 ? 0 : 1 - Math.min(one.nodes, other.nodes) / most;
  return 4 * apart("framework") + 2 * share + 0.4 * apart("level") + 0.2 * apart("task");
}

/** The others, the most similar first; of equally similar ones in their own order. */
export function rankAlike<D extends DumpOutline>(dump: DumpOutline, others: readonly D[]): D[] {
  return [...others].sort((one, other) => distance(dump, one) - distance(dump, other));
}
