/** The module tree as the flat list of lines a virtual list draws. */
import { type Real, toNumber } from "../numbers/format";

export interface Counts {
  no: number;
  warning: number;
  yes: number;
  na: number;
  origin: number;
}

export interface Entry {
  entry: number;
  name: string;
  address?: string;
  label: string;
  parent: number | null;
  order: number;
  kind: string;
  direction: string;
  children: number;
  verdict?: string | null;
  cls?: string | null;
  match?: string | null;
  confidence?: number | null;
  leftover?: string | null;
  /** Error of its output in floors. */
  out_score?: Real;
  counts?: Counts | null;
}

/** Siblings next to each other, and the cursors to those before and after them. */
export interface Span {
  items: readonly Entry[];
  /** Place of the first one among all children. */
  start: number;
  prev: string | null;
  next: string | null;
}

/** The loaded children of an entry: if it has many, the first ones and those around searched ones. */
export interface Branch {
  spans: readonly Span[];
  total: number;
}

export const TOP = -1;

/** Children by parent entry (TOP for the roots); a parent that is absent has not been asked for yet. */
export type Branches = ReadonlyMap<number, Branch>;

/** A branch with further siblings; spans that touch or overlap become one. */
export function withSpan(branch: Branch | undefined, span: Span, total: number): Branch {
  const spans: Span[] = [];
  for (const next of [...(branch?.spans ?? []), span].sort((one, other) => one.start - other.start)) {
    const last = spans.at(-1);
    if (!last || next.start > last.start + last.items.length) spans.push(next);
    else spans[spans.length - 1] = joined(last, next);
  }
  return { spans, total };
}

function joined(one: Span, other: Span): Span {
  const further = other.items.slice(Math.max(0, one.start + one.items.length - other.start));
  const next = further.length > 0 || one.items.length === 0 ? other.next : one.next;
  return { start: one.start, items: [...one.items, ...further], prev: one.prev, next };
}

export function holds(branch: Branch | undefined, entry: number): boolean {
  return branch?.spans.some((span) => span.items.some((item) => item.entry === entry)) ?? false;
}

/** The first level of a way from the top that is not here yet; null where all are. */
export function firstMissing(branches: Branches, path: readonly number[]): number | null {
  const missing = path.findIndex((entry, depth) => !holds(branches.get(path[depth - 1] ?? TOP), entry));
  return missing < 0 ? null : missing;
}

interface Line {
  key: string;
  depth: number;
}

export interface EntryLine extends Line {
  type: "entry";
  entry: Entry;
  expanded: boolean;
  position: number;
  setSize: number;
  /** The pass turns here: a backward entry below a parent that is not backward itself. */
  turns: boolean;
}

/** Consecutive siblings of one kind in one line, all clean or none of them: `layers.0 … layers.25 (26×)`. */
export interface FoldLine extends Line {
  type: "fold";
  entries: Entry[];
  /** Each holds something that is not right, and none an origin. */
  dirty: boolean;
  id: string;
  turns: boolean;
}

/** Siblings that are not here: before span number `gap` of the branch, behind the last one where `gap` is their number. */
export interface MoreLine extends Line {
  type: "more";
  parent: number;
  gap: number;
  /** How many. */
  hidden: number;
  loading: boolean;
}

export type TreeLine = EntryLine | FoldLine | MoreLine;

const FOLD_FROM = 4;
/** Layers that are not right are looked at one by one while they are few. */
const FOLD_DIRTY_FROM = 8;

export function flattenTree(
  branches: Branches,
  expanded: ReadonlySet<number>,
  unfolded: ReadonlySet<string> = new Set(),
  keep: ReadonlySet<number> = new Set(),
): TreeLine[] {
  const lines: TreeLine[] = [];
  // Branches under way, innermost last: nesting is as deep as the model's, and a call for each level could be too many.
  const open = [walkBranch(branches, TOP, 0, "", expanded, unfolded, keep)];
  while (open.length > 0) {
    const { value: line, done } = (open.at(-1) as Iterator<TreeLine>).next();
    if (done) {
      open.pop();
      continue;
    }
    lines.push(line);
    if (line.type === "entry" && line.expanded) {
      const { entry, depth } = line;
      open.push(walkBranch(branches, entry.entry, depth + 1, entry.direction, expanded, unfolded, keep));
    }
  }
  return lines;
}

/** Lines of one branch, without those below them. within: direction of the entry above */
function* walkBranch(
  branches: Branches,
  parent: number,
  depth: number,
  within: string,
  expanded: ReadonlySet<number>,
  unfolded: ReadonlySet<string>,
  keep: ReadonlySet<number>,
): Generator<TreeLine, undefined> {
  const branch = branches.get(parent);
  let known = 0;
  const more = (gap: number, hidden: number): MoreLine => {
    const key = `more:${parent}:${known}`;
    return { type: "more", key, depth, parent, gap, hidden, loading: branch === undefined };
  };
  if (!branch) {
    yield more(0, 0);
    return;
  }
  const turns = (entry: Entry) => entry.direction === "backward" && within !== "backward";
  for (const [gap, span] of branch.spans.entries()) {
    if (span.start > known) yield more(gap, span.start - known);
    known = span.start;
    for (const group of groupEqual(span.items, expanded, keep)) {
      const first = group[0] as Entry;
      const id = `${parent}:${first.entry}`;
      const dirty = isDirty(first);
      if (group.length >= (dirty ? FOLD_DIRTY_FROM : FOLD_FROM) && !unfolded.has(id)) {
        known += group.length;
        yield { type: "fold", key: `fold:${id}`, depth, entries: group, dirty, id, turns: turns(first) };
        continue;
      }
      for (const entry of group) {
        known += 1;
        yield {
          type: "entry",
          key: `entry:${entry.entry}`,
          depth,
          entry,
          expanded: entry.children > 0 && expanded.has(entry.entry),
          position: known,
          setSize: branch.total,
          turns: turns(entry),
        };
      }
    }
  }
  if (known < branch.total) yield more(branch.spans.length, branch.total - known);
}

/** Splits siblings into runs that may share a line; an open or kept entry, and one with an origin, always has its own line. */
function groupEqual(items: readonly Entry[], expanded: ReadonlySet<number>, keep: ReadonlySet<number>): Entry[][] {
  const groups: Entry[][] = [];
  let pattern: string | null = null;
  for (const entry of items) {
    const mine = expanded.has(entry.entry) || keep.has(entry.entry) ? null : foldPattern(entry);
    const last = groups.at(-1);
    if (last && mine !== null && mine === pattern) last.push(entry);
    else groups.push([entry]);
    pattern = mine;
  }
  return groups;
}

/** What two siblings must share to be one line; null for a line that must be seen. */
function foldPattern(entry: Entry): string | null {
  const { counts } = entry;
  if (entry.children === 0 || !counts || counts.origin > 0) return null;
  if (!/\d/.test(entry.label)) return null;
  const total = counts.yes + counts.na + counts.no + counts.warning;
  return `${isDirty(entry)}|${entry.label.replace(/\d+/g, "#")}|${entry.children}|${total}|${entry.direction}`;
}

function isDirty({ counts }: Entry): boolean {
  return counts != null && counts.no + counts.warning > 0;
}

/** What is not right in all of a fold, and the entry with the largest error; null where none has an error of its own. */
export function foldTrouble(entries: readonly Entry[]): { no: number; warning: number; worst: Entry | null } {
  let worst: Entry | null = null;
  let [no, warning] = [0, 0];
  for (const entry of entries) {
    no += entry.counts?.no ?? 0;
    warning += entry.counts?.warning ?? 0;
    const score = sized(entry);
    if (score !== null && (worst === null || score > (sized(worst) ?? 0))) worst = entry;
  }
  return { no, warning, worst };
}

/** Points of a small curve of the error over the entries of a fold, `0,0` top left and `1,1` bottom right; logarithmic, over a decade
 * or more, so that what is all but equal is drawn as that; the largest of neighbours where there are more than `most`. None for fewer
 * than two errors. */
export function foldCurve(entries: readonly Entry[], most: number): [x: number, y: number][] {
  const step = Math.max(1, Math.ceil(entries.length / most));
  const found: [number, number][] = [];
  for (const [index, entry] of entries.entries()) {
    const score = sized(entry);
    if (score === null || score <= 0) continue;
    const log = Math.log10(Math.min(score, 1e12));
    const last = found.at(-1);
    if (last && Math.floor(last[0] / step) === Math.floor(index / step)) last[1] = Math.max(last[1], log);
    else found.push([index, log]);
  }
  if (found.length < 2) return [];
  const logs = found.map(([, log]) => log);
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const room = Math.max(0, 1 - (high - low)) / 2;
  return found.map(([index, log]) => [
    index / Math.max(1, entries.length - 1),
    1 - (log - low + room) / (high - low + 2 * room),
  ]);
}

/** Error in floors; what has no number in it is as large as can be. */
function sized(entry: Entry): number | null {
  const score = toNumber(entry.out_score ?? null);
  return score !== null && Number.isNaN(score) ? Number.POSITIVE_INFINITY : score;
}

/** `layers.0 (Block)`, `layers.998 (Block)` -> `layers.0…998 (Block)`: short enough that nothing of it is cut off. */
export function foldSpan(first: string, last: string): string {
  const from = first.split(/(\d+)/);
  const to = last.split(/(\d+)/);
  const differing = from.flatMap((part, at) => (part === to[at] ? [] : [at]));
  const [at] = differing;
  if (differing.length !== 1 || at === undefined || from.length !== to.length) return `${first} … ${last}`;
  return [...from.slice(0, at), `${from[at]}…${to[at]}`, ...from.slice(at + 1)].join("");
}

/** Pixels of one level, and of all levels in view together at most: labels need the rest. */
const INDENT = 14;
const INDENTED = 120;

/** How many levels the lines in view are moved left by, and pixels of one level; both are the usual ones unless lines are deep. */
export function indentation(depths: readonly number[]): { shift: number; step: number } {
  const highest = depths.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
  const deepest = depths.reduce((one, other) => Math.max(one, other), 0);
  const shift = deepest * INDENT > INDENTED ? Math.max(0, highest - 1) : 0;
  return { shift, step: Math.min(INDENT, INDENTED / Math.max(1, deepest - shift)) };
}
