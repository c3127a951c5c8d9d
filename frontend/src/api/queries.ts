/** What screens read, as hooks. Keys start with the noun, so that one call invalidates everything below it. */
import {
  type InfiniteData,
  keepPreviousData,
  type QueryClient,
  queryOptions,
  useInfiniteQuery,
  useQuery,
} from "@tanstack/react-query";
import type { Filter, Sort } from "../base/address";
import { ApiError, api, apiUrl, take } from "./client";
import type { Comparison, Dump, DumpNodeRow, Flow, ListOrder, NodeRow, Page, TreeLevels, TreeRow } from "./types";

export const PAGE_ROWS = 200;
/** Most buckets the server cuts a run into. */
export const MOST_BUCKETS = 1500;

const LIST_ROWS = 50;

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

/** Folders and dump files of a folder of the server; of null, the roots. Asked anew whenever it is opened. */
export function usePaths(path: string | null, q: string) {
  return useInfiniteQuery({
    queryKey: ["paths", path, q],
    queryFn: ({ pageParam, signal }) =>
      take(api().GET("/api/paths", { params: { query: { path, q, cursor: pageParam, limit: 200 } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: 0,
  });
}

/** What an upload may have; asked again whenever files may be on their way. */
export function useUploadRoom() {
  return useQuery({
    queryKey: ["uploads", "room"],
    queryFn: ({ signal }) => take(api().GET("/api/uploads", { signal })),
  });
}

export function useHealth() {
  return useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => take(api().GET("/api/health", { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What the numbers of a pair of tensors are called and mean; the server's extensions are among them. */
export function useMetrics() {
  return useQuery({
    queryKey: ["metrics"],
    queryFn: async ({ signal }) => (await take(api().GET("/api/metrics", { signal }))).items,
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

export function useDumps(q: string, sort: ListOrder = "-created") {
  const fetchPage: FetchPage<Dump> = (cursor, signal) =>
    take(api().GET("/api/dumps", { params: { query: { q, sort, cursor, limit: LIST_ROWS } }, signal }));
  return useInfiniteQuery(pageOptions("dumps", [q, sort], (row) => row.status === "pending", fetchPage));
}

export function useComparisons(q: string, sort: ListOrder) {
  const fetchPage: FetchPage<Comparison> = (cursor, signal) =>
    take(api().GET("/api/comparisons", { params: { query: { q, sort, cursor, limit: LIST_ROWS } }, signal }));
  return useInfiniteQuery(pageOptions("comparisons", [q, sort], (row) => BUSY.has(row.status), fetchPage));
}

export function useDump(id: string) {
  return useQuery({
    queryKey: ["dumps", "one", id],
    queryFn: ({ signal }) => take(api().GET("/api/dumps/{dump_id}", { params: { path: { dump_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data?.status === "pending" ? 1000 : false),
  });
}

/** Path parameter of everything below one comparison. */
export function of(id: string) {
  return { comparison_id: id };
}

export function useComparison(id: string) {
  return useQuery({
    queryKey: ["comparisons", "one", id],
    queryFn: ({ signal }) => take(api().GET("/api/comparisons/{comparison_id}", { params: { path: of(id) }, signal })),
    refetchInterval: ({ state }) => (state.data && BUSY.has(state.data.status) ? 2000 : false),
  });
}

export function useSummary(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "summary"],
    queryFn: ({ signal }) =>
      take(api().GET("/api/comparisons/{comparison_id}/summary", { params: { path: of(id) }, signal })),
    enabled,
  });
}

export function usePlan(id: string) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "plan"],
    queryFn: ({ signal }) =>
      take(api().GET("/api/comparisons/{comparison_id}/plan", { params: { path: of(id) }, signal })),
  });
}

export function useOrigins(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "origins"],
    queryFn: ({ signal }) =>
      take(api().GET("/api/comparisons/{comparison_id}/origins", { params: { path: of(id) }, signal })),
    enabled,
  });
}

export function useStrip(id: string, unit: Unit | null, buckets: number) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "strip", unit, buckets],
    queryFn: ({ signal }) =>
      take(
        api().GET("/api/comparisons/{comparison_id}/strip", {
          params: { path: of(id), query: { ...unit, buckets: Math.min(buckets, MOST_BUCKETS) } },
          signal,
        }),
      ),
    enabled: unit !== null && buckets > 0,
    placeholderData: keepPreviousData,
  });
}

export interface NodeListQuery {
  filter: Filter;
  query: string;
  sort: Sort;
}

function listParams(unit: Unit | null, { filter, query, sort }: NodeListQuery) {
  return {
    ...unit,
    class: filter.classes,
    verdict: filter.verdicts,
    leftover: filter.leftovers,
    sort,
    ...(filter.api === null ? {} : { api: filter.api }),
    ...(filter.range === null ? {} : { from: filter.range[0], to: filter.range[1] }),
    ...(query === "" ? {} : { q: query }),
  };
}

function listed(
  id: string,
  unit: Unit,
  list: NodeListQuery,
  where: object,
  signal?: AbortSignal,
): Promise<Page<NodeRow>> {
  const query = { ...listParams(unit, list), ...where };
  const params = { path: of(id), query };
  return take(api().GET("/api/comparisons/{comparison_id}/nodes", { params, ...(signal ? { signal } : {}) }));
}

/** Rows of the call list from a place on. */
export function fetchNodesAt(
  id: string,
  unit: Unit,
  list: NodeListQuery,
  at: number,
  limit: number,
  signal: AbortSignal,
): Promise<Page<NodeRow>> {
  return listed(id, unit, list, { at, limit }, signal);
}

/** The row of a node, or the next one where the list does not show it. */
export function fetchNodeAround(
  id: string,
  unit: Unit,
  list: NodeListQuery,
  around: string,
  signal: AbortSignal,
): Promise<Page<NodeRow>> {
  return listed(id, unit, list, { around, limit: 1 }, signal);
}

/** A few rows of the list around a node, outside the cache of the list. */
export function fetchNodes(
  id: string,
  unit: Unit,
  list: NodeListQuery,
  around: string | null,
  limit: number,
): Promise<Page<NodeRow>> {
  return listed(id, unit, list, { around, limit });
}

export function nodeOptions(id: string, unit: Unit | null, name: string | null) {
  return queryOptions({
    queryKey: ["comparisons", "data", id, "node", unit, name],
    queryFn: ({ signal }) =>
      take(
        api().GET("/api/comparisons/{comparison_id}/nodes/{name}", {
          params: { path: { ...of(id), name: name ?? "" }, query: { ...unit } },
          signal,
        }),
      ),
  });
}

export function useNode(id: string, unit: Unit | null, name: string | null) {
  return useQuery({
    ...nodeOptions(id, unit, name),
    enabled: unit !== null && name !== null,
    placeholderData: keepPreviousData,
  });
}

function flowOptions(id: string, unit: Unit | null, name: string) {
  return {
    queryKey: ["comparisons", "data", id, "flow", unit, name],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      take(
        api().GET("/api/comparisons/{comparison_id}/nodes/{name}/flow", {
          params: { path: { ...of(id), name }, query: { ...unit } },
          signal,
        }),
      ),
  };
}

/** One hop of data flow around a node. */
export function useFlow(id: string, unit: Unit | null, name: string) {
  return useQuery({ ...flowOptions(id, unit, name), enabled: unit !== null });
}

/** The same for who cannot wait for the next drawing, from the cache where it is there. */
export function fetchFlow(client: QueryClient, id: string, unit: Unit, name: string): Promise<Flow> {
  return client.fetchQuery({ ...flowOptions(id, unit, name), staleTime: Number.POSITIVE_INFINITY });
}

export function usePair(id: string, pair: number) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "pair", pair],
    queryFn: ({ signal }) =>
      take(
        api().GET("/api/comparisons/{comparison_id}/pairs/{pair_id}", {
          params: { path: { ...of(id), pair_id: pair } },
          signal,
        }),
      ),
  });
}

/** Children of one row of a tree: the first ones, those that a cursor leads to, or the last ones. */
export async function fetchTree(
  noun: Noun,
  id: string,
  unit: Unit,
  parent: number | null,
  where: { cursor?: string; end?: boolean },
): Promise<Page<TreeRow>> {
  const query = { ...unit, parent, ...where, limit: PAGE_ROWS };
  const reply =
    noun === "dumps"
      ? await take(api().GET("/api/dumps/{dump_id}/tree", { params: { path: { dump_id: id }, query } }))
      : await take(api().GET("/api/comparisons/{comparison_id}/tree", { params: { path: of(id), query } }));
  return "items" in reply ? reply : { items: [], next: null, total: 0 };
}

/** The way to a node from a level of the tree on, each level with the rows beside it. */
export function fetchLevels(noun: Noun, id: string, unit: Unit, name: string, from: number): Promise<TreeLevels> {
  const query = { ...unit, reveal: name, from };
  return noun === "dumps"
    ? take(api().GET("/api/dumps/{dump_id}/tree/levels", { params: { path: { dump_id: id }, query } }))
    : take(api().GET("/api/comparisons/{comparison_id}/tree/levels", { params: { path: of(id), query } }));
}

/** Entries from the top of a tree down to a node. */
export async function fetchReveal(noun: Noun, id: string, unit: Unit, name: string): Promise<number[]> {
  const query = { ...unit, reveal: name };
  const reply =
    noun === "dumps"
      ? await take(api().GET("/api/dumps/{dump_id}/tree", { params: { path: { dump_id: id }, query } }))
      : await take(api().GET("/api/comparisons/{comparison_id}/tree", { params: { path: of(id), query } }));
  return "path" in reply ? reply.path : [];
}

/** Nodes of a dump whose names hold `q`: from a place on, or the named one or the next. */
export function fetchDumpNodes(
  id: string,
  unit: Unit,
  q: string,
  where: { at: number; limit: number } | { around: string; limit: 1 },
  signal: AbortSignal,
): Promise<Page<DumpNodeRow>> {
  const params = { path: { dump_id: id }, query: { ...unit, q, ...where } };
  return take(api().GET("/api/dumps/{dump_id}/nodes", { params, signal }));
}

/** Where NaN, infinities and clipped numbers of a dump began. */
export function useOverflow(id: string, unit: Unit, enabled: boolean) {
  return useQuery({
    queryKey: ["dumps", "data", id, "overflow", unit],
    queryFn: ({ signal }) =>
      take(
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
      take(
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

/** The script that runs a call alone; an error says why there is none. */
export function useScript(id: string, unit: Unit, name: string) {
  return useQuery({
    queryKey: ["dumps", "data", id, "script", unit, name],
    queryFn: ({ signal }) =>
      take(
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
      take(
        api().GET("/api/dumps/{dump_id}/nodes/{name}", {
          params: { path: { dump_id: id, name: name ?? "" }, query: { ...unit } },
          signal,
        }),
      ),
    enabled: name !== null,
    placeholderData: keepPreviousData,
  });
}

export function exportUrl(id: string, format: string): string {
  return apiUrl("comparisons", id, `export.${format}`);
}

/** A file of what the list shows; the JSON document then lists its item pairs too. */
export function exportListUrl(id: string, format: string, unit: Unit | null, list: NodeListQuery): string {
  const params = new URLSearchParams(format === "json" ? { pairs: "true" } : {});
  for (const [key, value] of Object.entries(listParams(unit, list))) {
    if (key !== "sort" && String(value) !== "") params.set(key, String(value));
  }
  return `${exportUrl(id, format)}?${params}`;
}

/** Everything about one comparison may have changed: a job finished, a policy was set. */
export function refreshComparison(client: QueryClient): void {
  void client.invalidateQueries({ queryKey: ["comparisons"] });
}
