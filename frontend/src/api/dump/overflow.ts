/** What rows of a dump's module tree saw of NaN and infinity. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, take } from "../client";
import type { Unit } from "../queries";
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
      const { items } = await take(
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
