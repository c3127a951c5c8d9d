/** The comparison on the screen, and what is known about all of it: answer, origins, notes, steps and ranks. */
import { createContext, type ReactNode, useMemo } from "react";
import { type NotesByNode, useNotes } from "../../../api/comparison/notes";
import { useOrigins, useSummary } from "../../../api/comparison/summary";
import type { Comparison, NodeNote, Origin, Summary } from "../../../api/types";
import { useRequired } from "./required";

/** The comparison on the screen. */
export const ComparisonContext = createContext<Comparison | null>(null);

export function useShownComparison(): Comparison {
  return useRequired(ComparisonContext);
}

export interface Result {
  summary: Summary | undefined;
  summaryProblem: Error | null;
  origins: readonly Origin[];
  /** What people noted about calls, by name. */
  notes: NotesByNode;
  steps: number[];
  ranks: number[];
  /** Summary, origins and notes are all here. */
  ready: boolean;
}

const NO_ORIGINS: readonly Origin[] = [];

const ResultContext = createContext<Result | null>(null);

export function useResult(): Result {
  return useRequired(ResultContext);
}

/** Asks for the result once: some forty parts of the screen show something of it, each row of suspects among them. */
export function ResultProvider({ children }: { children: ReactNode }) {
  const { id } = useShownComparison();
  const { data: summary, error: summaryProblem } = useSummary(id, true);
  const { data: reply } = useOrigins(id, true);
  const { notes, settled } = useNotes(id);
  const units = summary?.units;
  const steps = useMemo(() => distinct(units?.map((one) => one.step)), [units]);
  const ranks = useMemo(() => distinct(units?.map((one) => one.rank)), [units]);
  const origins = reply?.items ?? summary?.origins ?? NO_ORIGINS;
  const ready = summary !== undefined && reply !== undefined && settled;
  const result = useMemo(
    (): Result => ({ summary, summaryProblem, origins, notes, steps, ranks, ready }),
    [summary, summaryProblem, origins, notes, steps, ranks, ready],
  );
  return <ResultContext value={result}>{children}</ResultContext>;
}

/** Index of the first origin that nobody noted as accepted or known; 0 where there is none. */
export function firstOpenOrigin(origins: readonly Origin[], notes: NotesByNode): number {
  return Math.max(
    0,
    origins.findIndex((origin) => !isSettled(notes.get(origin.node))),
  );
}

/** Whether somebody noted that nothing needs to be done about a call's difference. */
function isSettled(note: NodeNote | undefined): boolean {
  return note?.standing === "accepted" || note?.standing === "known";
}

function distinct(numbers: readonly number[] | undefined): number[] {
  return [...new Set(numbers ?? [])].sort((a, b) => a - b);
}
