/** Watched folders: which there are, and what a screen changes about them. */
import { type InfiniteData, type Query, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, readReply } from "./client";
import type { Dump, Page, Watch, WatchSide } from "./types";

const POLL_MS = 2000;

/** What a person says about a watch: its partner, or none, and which side the watched dump is. */
export interface WatchPair {
  partner: string | null;
  side: WatchSide;
}

/** All watched folders; lists of dumps and comparisons are read again when something about one has changed. */
export function useWatches() {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["watches"],
    queryFn: ({ signal }) => readReply(api().GET("/api/watches", { params: { query: { limit: 200 } }, signal })),
    refetchInterval: ({ state }) => (state.data && state.data.items.length > 0 ? POLL_MS : false),
  });
  const rows = query.data?.items;
  const before = useRef(rows);
  useEffect(() => {
    if (before.current !== undefined && before.current !== rows) {
      void client.invalidateQueries({ queryKey: ["dumps", "list"] });
      void client.invalidateQueries({ queryKey: ["comparisons", "list"] });
    }
    before.current = rows;
  }, [rows, client]);
  // A list that was asked for before a change may come after the watches that tell of it.
  const { data, dataUpdatedAt } = query;
  useEffect(() => {
    if (data === undefined) return;
    const told = new Map(data.items.map((watch) => [watch.dump, JSON.stringify(watch)]));
    const isOld = ({ state }: Query) =>
      state.dataUpdatedAt <= dataUpdatedAt &&
      (state.data as InfiniteData<Page<Dump>> | undefined)?.pages.some((page) =>
        page.items.some((dump) => told.has(dump.id) && told.get(dump.id) !== JSON.stringify(dump.watch)),
      ) === true;
    void client.invalidateQueries({ queryKey: ["dumps", "list"], predicate: isOld });
  }, [data, dataUpdatedAt, client]);
  return query;
}

function useWatchChange<In>(change: (input: In) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["watches"] });
      void client.invalidateQueries({ queryKey: ["dumps"] });
    },
  });
}

/** Begins a watch, or gives one another partner. */
export function useWatch(dump: string, watch: Watch | null) {
  return useWatchChange((pair: WatchPair) =>
    watch === null
      ? readReply(api().POST("/api/watches", { body: { dump, ...pair } }))
      : readReply(api().PATCH("/api/watches/{watch_id}", { params: { path: { watch_id: watch.id } }, body: pair })),
  );
}

export function useStopWatch() {
  return useWatchChange((id: string) =>
    readReply(api().DELETE("/api/watches/{watch_id}", { params: { path: { watch_id: id } } })),
  );
}
