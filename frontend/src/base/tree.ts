/** The module tree as the flat list of lines a virtual list draws. */

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
  counts?: Counts | null;
}

export interface Branch {
  items: readonly Entry[];
  next: string | null;
}

export const TOP = -1;

/** Children by parent entry (TOP for the roots); a parent that is absent has not been asked for yet. */
export type Branches = ReadonlyMap<number, Branch>;

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

/** Equal, clean, consecutive siblings in one line: `layers.0 … layers.25 (26×)`. */
export interface FoldLine extends Line {
  type: "fold";
  entries: Entry[];
  id: string;
  turns: boolean;
}

export interface MoreLine extends Line {
  type: "more";
  parent: number;
  loading: boolean;
}

export type TreeLine = EntryLine | FoldLine | MoreLine;

const FOLD_FROM = 4;

export function flattenTree(
  branches: Branches,
  expanded: ReadonlySet<number>,
  unfolded: ReadonlySet<string> = new Set(),
  keep: ReadonlySet<number> = new Set(),
): TreeLine[] {
  const lines: TreeLine[] = [];
  const visit = (parent: number, depth: number, within: string): void => {
    const branch = branches.get(parent);
    if (!branch) {
      lines.push({ type: "more", key: `more:${parent}`, depth, parent, loading: true });
      return;
    }
    const turns = (entry: Entry) => entry.direction === "backward" && within !== "backward";
    for (const group of groupEqual(branch.items, expanded, keep)) {
      const first = group[0] as Entry;
      const id = `${parent}:${first.entry}`;
      if (group.length >= FOLD_FROM && !unfolded.has(id)) {
        lines.push({ type: "fold", key: `fold:${id}`, depth, entries: group, id, turns: turns(first) });
        continue;
      }
      for (const entry of group) {
        const open = entry.children > 0 && expanded.has(entry.entry);
        const position = branch.items.indexOf(entry) + 1;
        const setSize = branch.next === null ? branch.items.length : -1;
        const key = `entry:${entry.entry}`;
        lines.push({ type: "entry", key, depth, entry, expanded: open, position, setSize, turns: turns(entry) });
        if (open) visit(entry.entry, depth + 1, entry.direction);
      }
    }
    if (branch.next !== null) lines.push({ type: "more", key: `more:${parent}`, depth, parent, loading: false });
  };
  visit(TOP, 0, "");
  return lines;
}

/** Splits siblings into runs that may share a line; an open, kept or unclean entry always stands alone. */
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
  if (entry.children === 0 || !counts || counts.no + counts.warning + counts.origin > 0) return null;
  if (!/\d/.test(entry.label)) return null;
  const total = counts.yes + counts.na;
  return `${entry.label.replace(/\d+/g, "#")}|${entry.children}|${total}|${entry.direction}`;
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
