/** Calls of a dump: rows of the list, one call, its script. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, readReply } from "../client";
import type { Unit } from "../records";
import type { DumpNodeRow, Page } from "../types";

/** Nodes of a dump whose names hold `q`: from a place on, or the named one or the next. */
export function fetchDumpNodes(
  id: string,
  unit: Unit,
  q: string,
  where: { at: number; limit: number } | { around: string; limit: 1 },
  signal: AbortSignal,
): Promise<Page<DumpNodeRow>> {
  const params = { path: { dump_id: id }, query: { ...unit, q, ...where } };
  return readReply(api().GET("/api/dumps/{dump_id}/nodes", { params, signal }));
}

/** Place of a call in the order of the file; -1 where this step and rank has no such call. */
export async function fetchPlace(id: string, unit: Unit, name: string): Promise<number> {
  const found = await fetchDumpNodes(id, unit, "", { around: name, limit: 1 }, new AbortController().signal);
  return found.items[0]?.ordinal ?? -1;
}

/** The script that runs a call alone; an error says why there is none. */
export function useScript(id: string, unit: Unit, name: string) {
  return useQuery({
    queryKey: ["dumps", "data", id, "script", unit, name],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/reproduce/{name}", {
          params: { path: { dump_id: id, name }, query: { ...unit } },
          signal,
        }),
      ),
    retry: false,
  });
}

export function useDumpNode(id: string, unit: Unit, name: string | null) {
  return useQuery({
    queryKey: ["dumps", "data", id, "node", unit, name],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/nodes/{name}", {
          params: { path: { dump_id: id, name: name ?? "" }, query: { ...unit } },
          signal,
        }),
      ),
    enabled: name !== null,
    placeholderData: keepPreviousData,
  });
}

/** The source around the line that made a call. */
export function useDumpSource(id: string, unit: Unit, name: string | null) {
  return useQuery({
    queryKey: ["dumps", "data", id, "source", unit, name],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/nodes/{name}/source", {
          params: { path: { dump_id: id, name: name ?? "" }, query: { ...unit } },
          signal,
        }),
      ),
    enabled: name !== null,
    placeholderData: keepPreviousData,
  });
}
