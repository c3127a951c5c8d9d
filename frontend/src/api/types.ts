/** Wire shapes of docs/rest.md. */
import type { Real } from "../base/numbers";
import type { Counts, Entry } from "../base/tree";
import type { VerdictWord } from "../base/verdicts";

/** Seconds since the epoch, or ISO text. */
export type Moment = number | string | null;

export interface Page<T> {
  items: T[];
  next: string | null;
  prev?: string | null;
  total: number;
}

export interface Problem {
  loc: string;
  kind: string;
  message: string;
}

export interface Dump {
  id: string;
  name: string;
  path: string;
  status: "pending" | "ready" | "failed";
  job: string | null;
  error: unknown;
  framework: string | null;
  task: string | null;
  level: string | null;
  summary: string | null;
  steps: number[];
  ranks: number[];
  nodes: number;
  items: number;
  bytes: number | null;
  created: Moment;
  problems: Problem[];
}

export interface Leaf {
  name: string;
  role: string;
  path: string;
  type: string | null;
  dtype: string | null;
  shape: number[] | null;
  max: Real;
  min: Real;
  mean: Real;
  norm: Real;
  requires_grad: boolean | null;
  md5: string | null;
  value: unknown;
  data_name: string | null;
}

export interface DumpNodeRow {
  ordinal: number;
  name: string;
  kind: string;
  direction: string;
  order: number;
}

export interface DumpNode {
  name: string;
  step: number;
  rank: number;
  items: Leaf[];
  stack: string[];
  siblings: string[];
  path: string[];
}

export interface CountTotals {
  nodes: number;
  items: number;
  yes: number;
  no: number;
  warning: number;
  not_comparable: number;
  unmatched_target: number;
  unmatched_golden: number;
  unreadable: number;
}

export interface Comparison {
  id: string;
  name: string;
  status: "pending" | "running" | "done" | "failed" | "cancelled";
  job: string | null;
  error: unknown;
  target: string;
  golden: string;
  target_name: string;
  golden_name: string;
  policy: string;
  mode: string | null;
  counts: CountTotals | null;
  verdict: VerdictWord | null;
  origin: { node: string; kind: string; step: number; rank: number } | null;
  created: Moment;
  options: Record<string, unknown>;
}

export interface Side {
  path: string;
  framework: string;
  task: string;
  level: string;
  steps: number[];
  ranks: number[];
}

export interface Origin {
  step: number;
  rank: number;
  node: string;
  kind: string;
  confidence: number;
  confidence_word?: "high" | "medium" | "low";
  evidence: string;
  advice: string;
  stack: string[];
  pair?: number;
}

export interface UnitInfo {
  step: number;
  rank: number;
  verdict: VerdictWord | null;
  no: number;
  origins: number;
  inferred: boolean;
}

export interface Summary {
  mode: string;
  policy: string;
  target: Side;
  golden: Side;
  counts: CountTotals;
  first_no: { step: number; rank: number; node: string; item: string; reason: string } | null;
  origins: Origin[];
  problems: Problem[];
  settings: string[];
  classes: Record<string, number>;
  units: UnitInfo[];
}

export type TreeRow = Entry & { counts: Counts | null };

export interface StripBucket {
  first: number;
  last: number;
  severity: number;
  cls: string;
  verdict: string;
  seq: number;
  name?: string | null;
}

export interface Strip {
  total: number;
  buckets: StripBucket[];
  backward: number | null;
}

export interface NodeRow {
  pair: number;
  order: number;
  name: string;
  golden_name: string | null;
  match: string;
  confidence: number | null;
  kind: string;
  direction: string;
  api: string;
  verdict: VerdictWord;
  cls: string;
  in_score: Real;
  out_score: Real;
  in_error: Real;
  out_error: Real;
  entry: number | null;
}

export interface Pair {
  id: number;
  node: string;
  target: string | null;
  golden: string | null;
  role: string;
  match: string;
  verdict: VerdictWord;
  rule: string;
  score: Real;
  message: string | null;
  target_leaf: Leaf | null;
  golden_leaf: Leaf | null;
  metrics: Record<string, Real>;
}

export interface PairDetail {
  worst_index: number[] | null;
  worst_target: Real;
  worst_golden: Real;
}

export interface NodeDetail extends NodeRow {
  reason: string;
  rule: string;
  items: Pair[];
  target_stack: string[];
  golden_stack: string[];
  path: string[];
  siblings: string[];
}

export interface FigureReply {
  figure: { data: unknown[]; layout?: Record<string, unknown> } | null;
  text: string;
  missing: string | null;
}

export interface Job {
  id: string;
  kind: "ingest" | "compare" | "rejudge";
  subject: string;
  status: "queued" | "running" | "done" | "failed" | "cancelled";
  progress: number;
  message: string | null;
  eta: number | null;
  error: unknown;
  created: Moment;
  started: Moment;
  finished: Moment;
}

export interface Accepted {
  id: string;
  job: string;
}

export interface Health {
  version: string;
  database: string;
  executor: string;
  status: string;
}
