/** Nodes of a dump in the order of its file, by their place in the list. */
import { useMemo } from "react";
import { fetchDumpNodes } from "../../api/dump/nodes";
import type { Unit } from "../../api/records";
import type { DumpNodeRow } from "../../api/types";
import { type PagedRows, type Source, usePagedRows } from "../../widgets/lists/usePagedRows";

export function useNodeRows(id: string, unit: Unit, q: string, selected: string | null): PagedRows<DumpNodeRow> {
  const source = useMemo(
    (): Source<DumpNodeRow> => ({
      key: ["dumps", "data", id, "nodes", unit, q],
      enabled: true,
      at: (at, limit, signal) => fetchDumpNodes(id, unit, q, { at, limit }, signal),
      around: (around, signal) => fetchDumpNodes(id, unit, q, { around, limit: 1 }, signal),
      nameOf: (row) => row.name,
    }),
    [id, unit, q],
  );
  return usePagedRows(source, selected);
}
