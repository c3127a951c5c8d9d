/** The lazily loaded module tree of one step and rank. */

import { useCallback, useEffect, useMemo, useReducer, useRef } from "react";
import { heldLevels } from "../../api/file/answer";
import { retryUntilReachable } from "../../api/reconnect";
import type { Noun, Unit } from "../../api/records";
import { fetchLevels, fetchReveal, fetchTree } from "../../api/trees";
import type { TreeLevels, TreeRow } from "../../api/types";
import { IN_FILE } from "../../base/inFile";
import {
  type Branch,
  firstMissing,
  flattenTree,
  type MoreLine,
  type Span,
  TOP,
  type TreeLine,
  withSpan,
} from "../../base/lists/treeLines";

interface State {
  branches: ReadonlyMap<number, Branch>;
  expanded: ReadonlySet<number>;
  unfolded: ReadonlySet<string>;
  /** Entries from the top down to a node that must be made visible; empty when there is nothing to reveal. */
  path: readonly number[];
  /** The last path that the view is to follow; empty when the reader has gone elsewhere. */
  way: readonly number[];
  /** The view is to follow the path of the selected node when it is known. */
  followed: boolean;
  problem: unknown;
}

const NOWHERE: readonly number[] = [];
const EMPTY: State = {
  branches: new Map(),
  expanded: new Set(),
  unfolded: new Set(),
  path: NOWHERE,
  way: NOWHERE,
  followed: true,
  problem: null,
};

type Step =
  | { type: "reset" }
  | { type: "reload" }
  | { type: "span"; parent: number; span: Span; total: number }
  | { type: "levels"; levels: TreeLevels["levels"] }
  | { type: "toggle"; entry: number; open?: boolean }
  | { type: "unfold"; id: string }
  | { type: "follow" }
  | { type: "stay" }
  | { type: "reveal"; path: readonly number[] }
  | { type: "problem"; problem: unknown };

function reduce(state: State, step: Step): State {
  switch (step.type) {
    case "reset":
      return EMPTY;
    case "reload":
      return { ...state, branches: new Map(), problem: null };
    case "span": {
      const branches = new Map(state.branches);
      branches.set(step.parent, withSpan(branches.get(step.parent), step.span, step.total));
      return { ...state, branches, problem: null };
    }
    case "levels": {
      const branches = new Map(state.branches);
      for (const { parent, items, start, prev, next, total } of step.levels) {
        const span = { items, start: start ?? 0, prev: prev ?? null, next };
        branches.set(parent ?? TOP, withSpan(branches.get(parent ?? TOP), span, total));
      }
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
    case "follow":
      return state.followed ? state : { ...state, followed: true };
    case "stay":
      return state.followed || state.way !== NOWHERE ? { ...state, followed: false, way: NOWHERE } : state;
    case "reveal":
      return {
        ...state,
        path: step.path,
        way: state.followed ? step.path : state.way,
        expanded: new Set([...state.expanded, ...step.path.slice(0, -1)]),
      };
    case "problem":
      return { ...state, problem: step.problem };
  }
}

export interface TreeModel {
  lines: TreeLine[];
  problem: unknown;
  /** Index of the line of the revealed node, -1 while it is not loaded. */
  revealed: number;
  /** Another one with every request to reveal a node that the view is to follow; empty when it is to stay. */
  way: readonly number[];
  /** The reader has gone elsewhere: a node that is still being looked up does not take the view back. */
  stay: () => void;
  toggle: (entry: number, open?: boolean) => void;
  unfold: (id: string) => void;
  /** Reads siblings that are not here: the first of them, the last of them, or the last of all. */
  loadMore: (line: MoreLine, side: "first" | "last" | "end") => void;
  retry: () => void;
}

/**
 * The tree with the way to the selected node.
 *
 * `version` changes when the server's counts have (a policy was set); loaded branches are then read again. `now` is the
 * selection as it is at once where `selected` comes a moment later: who goes elsewhere in between is not taken back.
 */
export function useTree(
  noun: Noun,
  id: string,
  unit: Unit | null,
  selected: string | null,
  version: string,
  now: string | null = selected,
): TreeModel {
  const [state, dispatch] = useReducer(reduce, EMPTY);
  const unitKey = unit ? `${unit.step}/${unit.rank}` : "";
  const generation = useRef(0);
  const busy = useRef(new Set<number>());

  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says when the unit changed
  const load = useCallback(
    async (
      parent: number,
      where: { cursor?: string; end?: boolean },
      startOf: (items: readonly TreeRow[]) => number,
    ) => {
      if (!unit || busy.current.has(parent)) return;
      if (IN_FILE) {
        dispatch({ type: "levels", levels: heldLevels(unit.step, unit.rank, parent) });
        return;
      }
      busy.current.add(parent);
      const mine = generation.current;
      try {
        const page = await retryUntilReachable(
          () => fetchTree(noun, id, unit, parent === TOP ? null : parent, where),
          () => mine === generation.current,
        );
        if (mine !== generation.current) return;
        const span = {
          items: page.items,
          start: page.start ?? startOf(page.items),
          prev: page.prev ?? null,
          next: page.next,
        };
        dispatch({ type: "span", parent, span, total: page.total });
      } catch (problem) {
        if (mine === generation.current) dispatch({ type: "problem", problem });
      } finally {
        if (mine === generation.current) busy.current.delete(parent);
      }
    },
    [noun, id, unitKey],
  );

  // Requests still open when the tree is removed are cancelled.
  useEffect(
    () => () => {
      generation.current += 1;
    },
    [],
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

  const { branches, expanded, unfolded, path, way, problem } = state;
  const lines = useMemo(
    () => flattenTree(branches, expanded, unfolded, new Set(path)),
    [branches, expanded, unfolded, path],
  );

  // Every branch that is open but not loaded is asked for.
  useEffect(() => {
    if (!unit || problem) return;
    for (const line of lines) if (line.type === "more" && line.loading) void load(line.parent, {}, () => 0);
  }, [lines, load, unit, problem]);

  // The path to the selected node; each level is loaded with its neighbouring rows.
  // biome-ignore lint/correctness/useExhaustiveDependencies: with any of these the reader is led to the selected node again
  useEffect(() => dispatch({ type: "follow" }), [noun, id, unitKey, now, version]);
  const known = useRef(branches);
  known.current = branches;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says when the unit changed
  useEffect(() => {
    if (!unit || !selected) return;
    let gone = false;
    const wanted = () => !gone;
    const reveal = async () => {
      const path = await retryUntilReachable(() => fetchReveal(noun, id, unit, selected), wanted);
      let level = gone ? null : firstMissing(known.current, path);
      while (level !== null && !gone) {
        const from = level;
        const reply = await retryUntilReachable(() => fetchLevels(noun, id, unit, selected, from), wanted);
        if (!gone) dispatch({ type: "levels", levels: reply.levels });
        level = reply.next;
      }
      return path;
    };
    reveal()
      .then((path) => !gone && dispatch({ type: "reveal", path }))
      .catch(() => !gone && dispatch({ type: "reveal", path: NOWHERE }));
    return () => {
      gone = true;
    };
  }, [noun, id, unitKey, selected, version]);

  const target = path.at(-1);
  const revealed = useMemo(
    () => lines.findIndex((line) => line.type === "entry" && line.entry.entry === target),
    [lines, target],
  );

  return {
    lines,
    problem,
    revealed,
    way,
    stay: useCallback(() => dispatch({ type: "stay" }), []),
    toggle: useCallback(
      (entry, open) => dispatch({ type: "toggle", entry, ...(open === undefined ? {} : { open }) }),
      [],
    ),
    unfold: useCallback((id) => dispatch({ type: "unfold", id }), []),
    loadMore: useCallback(
      (line, side) => {
        if (IN_FILE) return; // what is not here cannot be read
        const spans = branches.get(line.parent)?.spans ?? [];
        const [above, below] = [spans[line.gap - 1], spans[line.gap]];
        if (side === "end") void load(line.parent, { end: true }, () => 0);
        else if (side === "last" && below?.prev) {
          void load(line.parent, { cursor: below.prev }, (items) => below.start - items.length);
        } else if (above?.next) {
          void load(line.parent, { cursor: above.next }, () => above.start + above.items.length);
        } else if (!above) void load(line.parent, {}, () => 0);
      },
      [branches, load],
    ),
    retry: useCallback(() => restart("reload"), [restart]),
  };
}
