/** The state of a comparison of checkpoints as kept in its address: `?state=differs,form&q=mlp&sort=-largest&n=3`. */

export const STATES = [
  "differs",
  "form",
  "target_only",
  "golden_only",
  "unreadable",
  "rounding",
  "equal_cast",
  "equal",
] as const;
export type CheckpointState = (typeof STATES)[number];

export const CHECKPOINT_SORTS = ["worst", "name", "-largest", "-share"] as const;
export type CheckpointSort = (typeof CHECKPOINT_SORTS)[number];

export interface CheckpointAddress {
  /** Any of these; all where none is named. */
  states: CheckpointState[];
  query: string;
  sort: CheckpointSort;
  /** Place of the selected tensor in the order `worst`. */
  tensor: number | null;
}

export function parseCheckpointAddress(search: string): CheckpointAddress {
  const params = new URLSearchParams(search);
  const words = (params.get("state") ?? "").split(",");
  const sort = params.get("sort");
  const tensor = params.get("n") ?? "";
  return {
    states: STATES.filter((state) => words.includes(state)),
    query: params.get("q") ?? "",
    sort: CHECKPOINT_SORTS.find((known) => known === sort) ?? "worst",
    tensor: /^\d{1,9}$/.test(tensor) ? Number(tensor) : null,
  };
}

/** The query string of an address, without "?"; defaults are left out. */
export function formatCheckpointAddress({ states, query, sort, tensor }: CheckpointAddress): string {
  const params = new URLSearchParams();
  if (states.length > 0) params.set("state", states.join(","));
  if (query) params.set("q", query);
  if (sort !== "worst") params.set("sort", sort);
  if (tensor !== null) params.set("n", String(tensor));
  return params.toString();
}
