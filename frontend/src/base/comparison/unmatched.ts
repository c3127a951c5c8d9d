/** Calls without a partner: why they have none, and on which side they are. */
import type { Side } from "./sides";

export const UNMATCHED_CAUSES = [
  "fused",
  "decomposed",
  "replaced",
  "one_backend",
  "wrapper",
  "left_out",
  "inserted",
  "recomputed",
  "compiled",
  "ended",
  "inside",
] as const;
export type UnmatchedCause = (typeof UNMATCHED_CAUSES)[number];

/** All causes but `inside`, which says that a call was compared at the boundary of a fused one. */
export const CAUSES_WITHOUT_PARTNER: UnmatchedCause[] = UNMATCHED_CAUSES.filter((word) => word !== "inside");

export function isUnmatchedCause(word: string | null | undefined): word is UnmatchedCause {
  return (UNMATCHED_CAUSES as readonly string[]).includes(word ?? "");
}

export interface Sided {
  name: string;
  golden_name: string | null;
  match: string;
  leftover: string | null;
}

/** The unique name of a row in the address and over REST: a golden call may share its name with a target call that is not its partner. */
export function addressOf(row: { name: string; address?: string }): string {
  return row.address ?? row.name;
}

/** The only side that makes a call; null where both do. */
export function onlySide({ match, leftover, golden_name }: Sided): Side | null {
  if (match !== "none" && leftover === null) return null;
  return golden_name === null ? "target" : "golden";
}

/** A row's name on one side; null where that side lacks the call. */
export function nameOnSide(row: Sided, side: Side): string | null {
  const only = onlySide(row);
  if (only !== null && only !== side) return null;
  return side === "golden" ? (row.golden_name ?? row.name) : row.name;
}

export interface Candidate extends Sided {
  pair: number;
  order: number;
  direction: string;
}

/** Calls of `side` that the call at `order` may be matched with: those without a partner first, each kind nearest first. */
export function rankCandidates<T extends Candidate>(
  rows: readonly T[],
  side: Side,
  from: Pick<Candidate, "pair" | "order" | "direction">,
): T[] {
  const seen = new Map<number, T>();
  for (const row of rows) {
    if (row.pair !== from.pair && row.direction === from.direction && nameOnSide(row, side) !== null)
      seen.set(row.pair, row);
  }
  const taken = (row: T) => (onlySide(row) === null ? 1 : 0);
  const far = (row: T) => Math.abs(row.order - from.order);
  return [...seen.values()].sort((one, other) => taken(one) - taken(other) || far(one) - far(other));
}
