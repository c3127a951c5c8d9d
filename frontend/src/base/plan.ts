/** How the ranks of one side were put together, as one line of text. */

/** Shards joined by +, stages by an arrow, replicas by &. */
export function ranksText(ranks: readonly (readonly (readonly number[])[])[]): string {
  return ranks.map((replica) => replica.map((stage) => stage.join("+")).join(" → ")).join(" & ");
}

/** Ways in which tensors were made, the most frequent first; "dimension 1" as its number. */
export function waysOf(counts: Readonly<Record<string, number>>): { way: string; dimension?: number; count: number }[] {
  return Object.entries(counts)
    .map(([key, count]) => {
      const place = /^dimension (\d+)$/.exec(key);
      return place ? { way: "dimension", dimension: Number(place[1]), count } : { way: key, count };
    })
    .sort((one, other) => other.count - one.count);
}
