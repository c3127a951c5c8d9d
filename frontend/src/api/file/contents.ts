/** What a result in one file holds. The server writes it: backend/dumpscope/api/one_file. */
import type { NodeRow, TreeRow } from "../types";

/** Children of a row of the tree: runs of those that are here, by the place of the first, and the number of all. */
export interface HeldBranch {
  total: number;
  spans: { start: number; items: TreeRow[] }[];
}

/** One step and rank. */
export interface HeldPlace {
  step: number;
  rank: number;
  /** Number of its calls, those that are not here too. */
  total: number;
  /** Those that are here, in call order. */
  calls: NodeRow[];
  /** By the entry of the parent, -1 for the top. */
  tree: Record<string, HeldBranch>;
}

export interface Contents {
  comparison: string;
  /** Of the dumpscope that wrote it. */
  version: string;
  made: string;
  /** Steps and ranks of the comparison, and calls of them all. */
  units: number;
  calls: number;
  places: HeldPlace[];
  /** Status and body, by the name of the request: `keyOf`. */
  replies: Record<string, [status: number, body: unknown]>;
}

declare global {
  /** Text of a packed part of the file, which its own first script defines. */
  var unpack: ((id: string) => Promise<string>) | undefined;
  /** Runs a packed part as a script. */
  var run: ((id: string) => Promise<void>) | undefined;
}

let held: Contents | null = null;

export async function openContents(): Promise<Contents> {
  held = JSON.parse((await globalThis.unpack?.("contents")) ?? "") as Contents;
  return held;
}

/** Throws before `openContents` has ended. */
export function contents(): Contents {
  if (!held) throw new Error("the file is not open");
  return held;
}

/** Number of calls of a step and rank, those that are not here too. */
export function callsOfUnit(unit: { step: number; rank: number } | null): number {
  return held?.places.find(({ step, rank }) => step === unit?.step && rank === unit?.rank)?.total ?? 0;
}

/** Whether a step and rank are here: always, where the page is no file. */
export function holdsUnit(step: number, rank: number): boolean {
  return held === null || held.places.some((place) => place.step === step && place.rank === rank);
}
