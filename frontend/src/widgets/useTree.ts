/** The lazily loaded module tree of one step and rank. */
import { useCallback, useEffect, useMemo, useReducer, useRef } from "react";
import { fetchReveal, fetchTree, type Noun, type Unit } from "../api/queries";
import type { TreeRow } from "../api/types";
import { type Branch, flattenTree, TOP, type TreeLine } from "../base/tree";

interface State {
  branches: ReadonlyMap<number, Branch>;
  expanded: ReadonlySet<number>;
  unfolded: ReadonlySet<string>;
  /** Entries from the top down to a node that must be made visible; empty when there is nothing to reveal. */
  path: readonly number[];
  problem: unknown;
}

const EMPTY: State = { branches: new Map(), expanded: new Set(), unfolded: new Set(), path: [], problem: null };

type Step =
  | { type: "reset" }
  | { type: "reload" }
  | { type: "page"; parent: number; items: TreeRow[]; next: string | null; first: boolean }
  | { type: "toggle"; entry: number; open?: boolean }
  | { type: "unfold"; id: string }
  | { type: "reveal"; path: readonly number[] }
  | { type: "problem"; problem: unknown };

function reduce(state: State, step: Step): State {
  switch (step.type) {
    case "reset":
      return EMPTY;
    case "reload":
      return { ...state, branches: new Map(), problem: null };
    case "page": {
      const branches = new Map(state.branches);
      const known = step.first ? [] : (branches.get(step.parent)?.items ?? []);
      branches.set(step.parent, { items: [...known, ...step.items], next: step.next });
      return { ...state, branches, problem: null };
    }
    case "toggle": {
      const expanded = new Set(state.expanded);
      const open = step.open ?? !expanded.has(step.entry);
      if (open) expanded.add(step.entry);
      else expanded.delete(step.entry);
      return { ...state, expanded };
    }
    case "unfold":
      return { ...state, unfolded: new Set([...state.unfolded, step.id]) };
    case "reveal":
      return { ...state, path: step.path, expanded: new Set([...state.expanded, ...step.path.slice(0, -1)]) };
    case "problem":
      return { ...state, problem: step.problem };
  }
}

/** Pages read while looking for a node among its siblings; past them it is shown in the list only. */
const REVEAL_PAGES = 25;

export interface TreeModel {
  lines: TreeLine[];
  problem: unknown;
  /** Index of the line of the revealed node, -1 while it is not loaded. */
  revealed: number;
  toggle: (entry: number, open?: boolean) => void;
  unfold: (id: string) => void;
  loadMore: (parent: number) => void;
  retry: () => void;
}

/** `version` changes when the server's counts have (a policy was set); loaded branches are then read again. */
export function useTree(
  noun: Noun,
  id: string,
  unit: Unit | null,
  selected: string | null,
  version: string,
): TreeModel {
  const [state, dispatch] = useReducer(reduce, EMPTY);
  const unitKey = unit ? `${unit.step}/${unit.rank}` : "";
  const generation = useRef(0);
  const busy = useRef(new Set<number>());
  const pages = useRef(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says when the unit changed
  const load = useCallback(
    async (parent: number, cursor: string | null) => {
      if (!unit || busy.current.has(parent)) return;
      busy.current.add(parent);
      const mine = generation.current;
      try {
        const page = await fetchTree(noun, id, unit, parent === TOP ? null : parent, cursor);
        if (mine !== generation.current) return;
        dispatch({ type: "page", parent, items: page.items, next: page.next, first: cursor === null });
      } catch (problem) {
        if (mine === generation.current) dispatch({ type: "problem", problem });
      } finally {
        if (mine === generation.current) busy.current.delete(parent);
      }
    },
    [noun, id, unitKey],
  );

  const restart = useCallback((type: "reset" | "reload") => {
    generation.current += 1;
    busy.current = new Set();
    dispatch({ type });
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another unit has other entries
  useEffect(() => restart("reset"), [noun, id, unitKey]);
  const firstVersion = useRef(version);
  useEffect(() => {
    if (firstVersion.current !== version) restart("reload");
    firstVersion.current = version;
  }, [version, restart]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says when the unit changed
  useEffect(() => {
    if (!unit || !selected) return;
    let gone = false;
    pages.current = 0;
    fetchReveal(noun, id, unit, selected)
      .then((path) => !gone && dispatch({ type: "reveal", path }))
      .catch(() => !gone && dispatch({ type: "reveal", path: [] }));
    return () => {
      gone = true;
    };
  }, [noun, id, unitKey, selected]);

  const { branches, expanded, unfolded, path, problem } = state;
  const lines = useMemo(
    () => flattenTree(branches, expanded, unfolded, new Set(path)),
    [branches, expanded, unfolded, path],
  );

  // Every branch that is open but not loaded is asked for.
  useEffect(() => {
    if (!unit || problem) return;
    for (const line of lines) if (line.type === "more" && line.loading) void load(line.parent, null);
  }, [lines, load, unit, problem]);

  // A node far down among its siblings: read on until its page is there.
  useEffect(() => {
    for (const [depth, entry] of path.entries()) {
      const parent = depth === 0 ? TOP : (path[depth - 1] as number);
      const branch = branches.get(parent);
      if (!branch) return;
      if (branch.items.some((row) => row.entry === entry)) continue;
      if (branch.next !== null && pages.current < REVEAL_PAGES && !busy.current.has(parent)) {
        pages.current += 1;
        void load(parent, branch.next);
      }
      return;
    }
  }, [path, branches, load]);

  const target = path.at(-1);
  const revealed = useMemo(
    () => lines.findIndex((line) => line.type === "entry" && line.entry.entry === target),
    [lines, target],
  );

  return {
    lines,
    problem,
    revealed,
    toggle: useCallback(
      (entry, open) => dispatch({ type: "toggle", entry, ...(open === undefined ? {} : { open }) }),
      [],
    ),
    unfold: useCallback((id) => dispatch({ type: "unfold", id }), []),
    loadMore: useCallback(
      (parent) => {
        const next = branches.get(parent)?.next;
        if (next) void load(parent, next);
      },
      [branches, load],
    ),
    retry: useCallback(() => restart("reload"), [restart]),
  };
}
