/** Rows of the call list around the selection: pages come and go at both ends while the reader stays where he is. */
import { useEffect, useMemo, useRef, useState } from "react";
import { type NodeListQuery, type Unit, useNodes } from "../api/queries";
import type { NodeRow } from "../api/types";

export interface CallRows {
  rows: NodeRow[];
  total: number;
  /** Highest place in call order among the rows, for the width of its column. */
  last: number;
  problem: Error | null;
  loading: boolean;
  hasNext: boolean;
  hasPrevious: boolean;
  fetchNext: () => void;
  fetchPrevious: () => void;
  retry: () => void;
  /** Row to scroll to, with a number that grows with every request to do so. */
  goal: { index: number; turn: number };
}

export function useCallRows(id: string, unit: Unit | null, list: NodeListQuery, selected: string | null): CallRows {
  const listKey = JSON.stringify([id, unit, list]);
  const [anchor, setAnchor] = useState<{ key: string; node: string | null }>({ key: listKey, node: selected });
  const [goal, setGoal] = useState({ index: -1, turn: 0 });
  // Another list starts around what is selected then.
  const node = anchor.key === listKey ? anchor.node : selected;
  const query = useNodes(id, unit, list, node);
  const { data, isPlaceholderData } = query;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const pending = useRef<string | null>(null);
  const asked = useRef<string | null>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new selection or list is what asks for a new place
  useEffect(() => {
    pending.current = selected;
    asked.current = null;
    if (anchor.key !== listKey) setAnchor({ key: listKey, node: selected });
  }, [selected, listKey]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `selected` says that `pending` was set
  useEffect(() => {
    const wanted = pending.current;
    if (wanted === null || !data || isPlaceholderData) return;
    const index = rows.findIndex((row) => row.address === wanted);
    if (index >= 0) {
      pending.current = null;
      setGoal((last) => ({ index, turn: last.turn + 1 }));
    } else if (node !== wanted && asked.current !== wanted) {
      asked.current = wanted;
      setAnchor({ key: listKey, node: wanted });
    } else {
      pending.current = null;
    }
  }, [rows, data, isPlaceholderData, node, listKey, selected]);

  return {
    rows,
    total: data?.pages[0]?.total ?? 0,
    last: Math.max(99, rows[0]?.order ?? 0, rows.at(-1)?.order ?? 0),
    problem: query.error,
    loading: query.isPending || isPlaceholderData,
    hasNext: query.hasNextPage,
    hasPrevious: query.hasPreviousPage,
    fetchNext: () => {
      if (query.hasNextPage && !query.isFetching) void query.fetchNextPage();
    },
    fetchPrevious: () => {
      if (query.hasPreviousPage && !query.isFetching) void query.fetchPreviousPage();
    },
    retry: () => void query.refetch(),
    goal,
  };
}
