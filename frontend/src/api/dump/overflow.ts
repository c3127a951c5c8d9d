/** What rows of a dump's module tree saw of NaN and infinity. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, readReply } from "../client";
import { PAGE_ROWS, type Unit } from "../records";
import type { OverflowBelow } from "../types";

/** By entry, of these rows; those of the rows asked for before stay until the new ones are here. */
export function useOverflowBelow(
  id: string,
  unit: Unit,
  entries: readonly number[],
  enabled: boolean,
): ReadonlyMap<number, OverflowBelow> {
  const { data } = useQuery({
    queryKey: ["dumps", "data", id, "overflow-tree", unit, entries],
    queryFn: async ({ signal }) => {
      const { items } = await readReply(
        api().GET("/api/dumps/{dump_id}/overflow/tree", {
          params: { path: { dump_id: id }, query: { ...unit, entries: [entries.join(",")] } },
          signal,
        }),
      );
      return new Map(items.map((row) => [row.entry, row]));
    },
    enabled: enabled && entries.length > 0,
    placeholderData: keepPreviousData,
  });
  return data ?? NONE;
}

const NONE: ReadonlyMap<number, OverflowBelow> = new Map();

/** Where NaN, infinities and clipped numbers of a dump began. */
export function useOverflow(id: string, unit: Unit, enabled: boolean) {
  return useQuery({
    queryKey: ["dumps", "data", id, "overflow", unit],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/overflow", { params: { path: { dump_id: id }, query: { ...unit } }, signal }),
      ),
    enabled,
  });
}

/** Calls that saw such a number, all or only `node`. */
export function useFindings(id: string, unit: Unit, node: string | null, enabled: boolean) {
  return useInfiniteQuery({
    queryKey: ["dumps", "data", id, "findings", unit, node],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/findings", {
          params: { path: { dump_id: id }, query: { ...unit, node, cursor: pageParam, limit: PAGE_ROWS } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    enabled,
  });
}

const BIRTHS = "origin,input,saturated,growth";
const MOST_BIRTHS = 500;

/** Calls where such a number was made or came in, in call order; of very many the first. */
export function useBirths(id: string, unit: Unit, enabled: boolean) {
  return useQuery({
    queryKey: ["dumps", "data", id, "births", unit],
    queryFn: async ({ signal }) => {
      const query = { ...unit, part: [BIRTHS], limit: MOST_BIRTHS };
      const params = { path: { dump_id: id }, query };
      return (await readReply(api().GET("/api/dumps/{dump_id}/findings", { params, signal }))).items;
    },
    enabled,
  });
}
