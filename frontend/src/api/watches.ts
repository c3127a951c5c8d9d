/** Watched folders: which there are, and what a screen changes about them. */
import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, readReply } from "./client";
import type { Watch, WatchSide } from "./types";

const POLL_MS = 2000;

/** What a person says about a watch: its partner, or none, and which side the watched dump is. */
export interface WatchPair {
  partner: string | null;
  side: WatchSide;
}

/** All watched folders; lists of dumps and comparisons are read again when they come and when something about one has changed. */
export function useWatches() {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["watches"],
    queryFn: ({ signal }) => readReply(api().GET("/api/watches", { params: { query: { limit: 200 } }, signal })),
    refetchInterval: ({ state }) => (state.data && state.data.items.length > 0 ? POLL_MS : false),
  });
  const rows = query.data?.items;
  const before = useRef<readonly Watch[]>([]);
  useEffect(() => {
    if (rows === undefined || (rows.length === 0 && before.current.length === 0)) return;
    if (rows !== before.current) for (const noun of ["dumps", "comparisons"]) void readAgain(client, [noun, "list"]);
    before.current = rows;
  }, [rows, client]);
  return query;
}

/** A first reply that is still on its way is not waited for: it may be older than what asks for another. */
async function readAgain(client: QueryClient, queryKey: readonly string[]): Promise<void> {
  await client.cancelQueries({ queryKey, predicate: ({ state }) => state.data === undefined });
  await client.invalidateQueries({ queryKey });
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
