/** The module tree of a file, as far as the file holds it. */
import type { TreeLevels, TreeRow } from "../types";
import type { HeldPlace } from "./contents";

const TOP = -1;

type Level = TreeLevels["levels"][number];

/** Runs of the children of a row that are here. */
export function branchLevels(place: HeldPlace, parent: number): Level[] {
  const branch = place.tree[parent];
  const level = { parent: parent === TOP ? null : parent, prev: null, next: null };
  if (!branch) return [{ ...level, items: [], total: childrenOf(place, parent), start: 0 }];
  return branch.spans.map(({ start, items }) => ({ ...level, items, total: branch.total, start }));
}

function childrenOf(place: HeldPlace, entry: number): number {
  return findRow(place, (row) => row.entry === entry)?.children ?? 0;
}

function findRow(place: HeldPlace, test: (row: TreeRow) => boolean): TreeRow | undefined {
  for (const { spans } of Object.values(place.tree))
    for (const { items } of spans) {
      const found = items.find(test);
      if (found) return found;
    }
  return undefined;
}

/** Entries from the top down to a node; none where the tree of the file does not hold it. */
export function wayTo(place: HeldPlace, name: string): number[] {
  const way: number[] = [];
  let row = findRow(place, (one) => one.address === name || one.name === name);
  while (row) {
    way.unshift(row.entry);
    const { parent } = row;
    row = parent === null ? undefined : findRow(place, (one) => one.entry === parent);
  }
  return way;
}

/** The levels of that way from a given one down. */
export function levelsTo(place: HeldPlace, name: string, from: number): TreeLevels {
  const way = wayTo(place, name);
  const levels = way.slice(from).flatMap((_entry, index) => branchLevels(place, way[from + index - 1] ?? TOP));
  return { levels, depth: way.length, next: null };
}
