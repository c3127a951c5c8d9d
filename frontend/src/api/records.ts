/** Dumps and comparisons as records: their lists, one of them, and what the start screen asks. Keys of requests start with the noun, so
 * that one call invalidates everything below it. */
import {
  type InfiniteData,
  keepPreviousData,
  type QueryClient,
  useInfiniteQuery,
  useQuery,
} from "@tanstack/react-query";
import { ApiError, api, readReply } from "./client";
import type { Comparison, Dump, ListOrder, Page } from "./types";

export const PAGE_ROWS = 200;

const LIST_ROWS = 50;
const WATCH_MS = 2000;

export type Noun = "dumps" | "comparisons";

export interface Unit {
  step: number;
  rank: number;
}

const BUSY = new Set(["pending", "running"]);

export function retryQuery(failures: number, problem: Error): boolean {
  if (problem instanceof ApiError && problem.status >= 400 && problem.status < 500) return false;
  return failures < 2;
}

/** Folders and dump files in a folder of the server; null: the roots. Never cached. */
export function usePaths(path: string | null, q: string) {
  return useInfiniteQuery({
    queryKey: ["paths", path, q],
    queryFn: ({ pageParam, signal }) =>
      readReply(api().GET("/api/paths", { params: { query: { path, q, cursor: pageParam, limit: 200 } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: 0,
  });
}

/** Free space for uploads. */
export function useUploadRoom() {
  return useQuery({
    queryKey: ["uploads", "room"],
    queryFn: ({ signal }) => readReply(api().GET("/api/uploads", { signal })),
  });
}

export function useHealth() {
  return useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => readReply(api().GET("/api/health", { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Names and meanings of the numbers of a pair of tensors; metrics that other packages add are among them. */
export function useMetrics() {
  return useQuery({
    queryKey: ["metrics"],
    queryFn: async ({ signal }) => (await readReply(api().GET("/api/metrics", { signal }))).items,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What the rules of verdicts say. */
export function useRules() {
  return useQuery({
    queryKey: ["rules"],
    queryFn: async ({ signal }) => (await readReply(api().GET("/api/rules", { signal }))).items,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function pageOptions<T>(noun: Noun, key: readonly string[], busy: (row: T) => boolean, fetchPage: FetchPage<T>) {
  return {
    queryKey: [noun, "list", ...key],
    queryFn: ({ pageParam, signal }: { pageParam: string | null; signal: AbortSignal }) => fetchPage(pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last: Page<T>) => last.next,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }: { state: { data?: InfiniteData<Page<T>> } }) =>
      state.data?.pages.some((page) => page.items.some(busy)) ? 1500 : (false as const),
  };
}

type FetchPage<T> = (cursor: string | null, signal: AbortSignal) => Promise<Page<T>>;

export function useDumps(q: string, sort: ListOrder = "-created", watched = false) {
  const fetchPage: FetchPage<Dump> = (cursor, signal) =>
    readReply(api().GET("/api/dumps", { params: { query: { q, sort, watched, cursor, limit: LIST_ROWS } }, signal }));
  return useInfiniteQuery(pageOptions("dumps", [q, sort, String(watched)], isBeingRead, fetchPage));
}

/** A job reads it; a watched folder in which nothing is yet waits for its run. */
function isBeingRead(dump: Dump): boolean {
  return dump.status === "pending" && (dump.job !== null || !dump.watch);
}

export function useComparisons(q: string, sort: ListOrder) {
  const fetchPage: FetchPage<Comparison> = (cursor, signal) =>
    readReply(api().GET("/api/comparisons", { params: { query: { q, sort, cursor, limit: LIST_ROWS } }, signal }));
  return useInfiniteQuery(pageOptions("comparisons", [q, sort], (row) => BUSY.has(row.status), fetchPage));
}

export function fetchDump(id: string, signal?: AbortSignal): Promise<Dump> {
  return readReply(api().GET("/api/dumps/{dump_id}", { params: { path: { dump_id: id } }, signal }));
}

export function useDump(id: string) {
  return useQuery({
    queryKey: ["dumps", "one", id],
    queryFn: async ({ client, queryKey, signal }) => {
      const before = client.getQueryData<Dump>(queryKey);
      const now = await fetchDump(id, signal);
      if (before && before.status === "ready" && hasGrown(before, now))
        void client.invalidateQueries({ queryKey: ["dumps", "data", id] });
      return now;
    },
    refetchInterval: ({ state: { data } }) => (data?.status === "pending" ? 1000 : data?.watch ? WATCH_MS : false),
  });
}

/** A watch has read more of it. */
function hasGrown(before: Dump, now: Dump): boolean {
  return before.nodes !== now.nodes || before.items !== now.items || before.steps.length !== now.steps.length;
}

/** Path parameter of everything below one comparison. */
export function comparisonPath(id: string) {
  return { comparison_id: id };
}

export function isBusy(comparison: Comparison): boolean {
  return BUSY.has(comparison.status);
}

/** A result that is read after its comparison is done stays; one from before a comparison was judged anew is read again. */
export function useComparison(id: string) {
  return useQuery({
    queryKey: ["comparisons", "one", id],
    queryFn: async ({ client, queryKey, signal }) => {
      const before = client.getQueryData<Comparison>(queryKey);
      const now = await readReply(
        api().GET("/api/comparisons/{comparison_id}", { params: { path: comparisonPath(id) }, signal }),
      );
      if (before && isBusy(before) && !isBusy(now))
        void client.invalidateQueries({ queryKey: ["comparisons", "data", id] });
      return now;
    },
    refetchInterval: ({ state }) => (state.data && isBusy(state.data) ? 2000 : false),
  });
}

/** Everything about one comparison may have changed: a job finished, a policy was set. */
export function refreshComparison(client: QueryClient): void {
  void client.invalidateQueries({ queryKey: ["comparisons"] });
}
