/** Rows of the call list, by their place in it. */
import { useMemo } from "react";
import { fetchNodeAround, fetchNodesAt, type NodeListQuery } from "../../api/comparison/nodes";
import type { Unit } from "../../api/records";
import type { NodeRow } from "../../api/types";
import { type PagedRows, type Source, usePagedRows } from "./usePagedRows";

export type CallRows = PagedRows<NodeRow>;

export function useCallRows(id: string, unit: Unit | null, list: NodeListQuery, selected: string | null): CallRows {
  const source = useMemo((): Source<NodeRow> => {
    const place = unit ?? { step: 0, rank: 0 };
    return {
      key: ["comparisons", "data", id, "nodes", unit, list],
      enabled: unit !== null,
      at: (first, limit, signal) => fetchNodesAt(id, place, list, first, limit, signal),
      around: (name, signal) => fetchNodeAround(id, place, list, name, signal),
      nameOf: (row) => row.address,
    };
  }, [id, unit, list]);
  return usePagedRows(source, selected);
}
