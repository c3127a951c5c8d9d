/** With which call a dump opens, and why: its first number that nobody asked for, else its first call. */
import { useBirths, useOverflow } from "../../api/dump/overflow";
import type { Unit } from "../../api/records";
import type { Dump, OverflowSummary } from "../../api/types";

export type OpenedAt = "found" | "clipped" | "growth" | "clean" | "blind" | "unknown";

export interface Opening {
  overflow: OverflowSummary | undefined;
  /** null while it is looked for, and where the first call of the list is the one. */
  node: string | null;
  /** null while it is looked for. */
  why: OpenedAt | null;
}

export function useOpening(dump: Dump, unit: Unit): Opening {
  const { data, error } = useOverflow(dump.id, unit, dump.nodes > 0);
  const overflow = data && data.step === unit.step && data.rank === unit.rank ? data : undefined;
  const { saturated = 0, growth = 0 } = overflow?.counts ?? {};
  // The summary names only numbers that are wrong for certain; an extreme one is worth a look too.
  const extreme = overflow !== undefined && overflow.first === null && saturated + growth > 0;
  const births = useBirths(dump.id, unit, extreme);
  if (error ?? births.error) return { overflow, node: null, why: "unknown" };
  if (!overflow || (extreme && !births.data)) return { overflow, node: null, why: null };
  const first = overflow.first ?? births.data?.[0];
  if (!first) return { overflow, node: null, why: overflow.checked > 0 ? "clean" : "blind" };
  return {
    overflow,
    node: first.node,
    why: first.part === "growth" ? "growth" : isClipped(first) ? "clipped" : "found",
  };
}

/** Whether a finding holds only numbers at the limit of their dtype. */
export function isClipped({ inputs, outputs }: { inputs: readonly string[]; outputs: readonly string[] }): boolean {
  return !outputs.concat(inputs).some((word) => /nan|inf/.test(word));
}
