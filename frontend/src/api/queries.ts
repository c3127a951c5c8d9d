/** What screens read and change, as hooks. Keys start with the noun, so that one call invalidates everything below it. */
import {
  type InfiniteData,
  keepPreviousData,
  type QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import type { Filter } from "../base/address";
import { ApiError, apiUrl, ask } from "./client";
import type {
  Accepted,
  Comparison,
  Dump,
  DumpNode,
  DumpNodeRow,
  FigureReply,
  Health,
  NodeDetail,
  NodeRow,
  Origin,
  Page,
  Pair,
  PairDetail,
  Strip,
  Summary,
  TreeRow,
} from "./types";

export const PAGE_ROWS = 200;
/** Pages kept in memory: far ones are dropped and fetched again on the way back. */
export const MAX_PAGES = 8;

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

export function useHealth() {
  return useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => ask<Health>(apiUrl(["health"]), { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function usePages<T>(noun: Noun, query: string, busy: (row: T) => boolean) {
  return useInfiniteQuery({
    queryKey: [noun, "list", query],
    queryFn: ({ pageParam, signal }) =>
      ask<Page<T>>(apiUrl([noun], { q: query, cursor: pageParam, limit: 50 }), { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.items.some(busy)) ? 1500 : false),
  });
}

export function useDumps(query: string) {
  return usePages<Dump>("dumps", query, (row) => row.status === "pending");
}

export function useComparisons(query: string) {
  return usePages<Comparison>("comparisons", query, (row) => BUSY.has(row.status));
}

export function useDump(id: string) {
  return useQuery({
    queryKey: ["dumps", "one", id],
    queryFn: ({ signal }) => ask<Dump>(apiUrl(["dumps", id]), { signal }),
    refetchInterval: ({ state }) => (state.data?.status === "pending" ? 1000 : false),
  });
}

export function useComparison(id: string) {
  return useQuery({
    queryKey: ["comparisons", "one", id],
    queryFn: ({ signal }) => ask<Comparison>(apiUrl(["comparisons", id]), { signal }),
    refetchInterval: ({ state }) => (state.data && BUSY.has(state.data.status) ? 2000 : false),
  });
}

export function useSummary(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "summary"],
    queryFn: ({ signal }) => ask<Summary>(apiUrl(["comparisons", id, "summary"]), { signal }),
    enabled,
  });
}

export function useOrigins(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "origins"],
    queryFn: ({ signal }) => ask<{ items: Origin[] }>(apiUrl(["comparisons", id, "origins"]), { signal }),
    enabled,
  });
}

export function useStrip(id: string, unit: Unit | null, buckets: number) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "strip", unit, buckets],
    queryFn: ({ signal }) => ask<Strip>(apiUrl(["comparisons", id, "strip"], { ...unit, buckets }), { signal }),
    enabled: unit !== null && buckets > 0,
    placeholderData: keepPreviousData,
  });
}

export interface NodeListQuery {
  filter: Filter;
  query: string;
  sort: string;
}

function listParams(unit: Unit, { filter, query, sort }: NodeListQuery) {
  return {
    step: unit.step,
    rank: unit.rank,
    class: filter.classes,
    verdict: filter.verdicts,
    api: filter.api,
    from: filter.range?.[0],
    to: filter.range?.[1],
    q: query,
    sort: sort === "order" ? null : sort,
  };
}

type Cursor = { cursor: string | null; around: string | null };

/** Rows of the call list. `anchor` names the node the first page is centred on. */
export function useNodes(id: string, unit: Unit | null, list: NodeListQuery, anchor: string | null) {
  return useInfiniteQuery<Page<NodeRow>, Error, InfiniteData<Page<NodeRow>, Cursor>, unknown[], Cursor>({
    queryKey: ["comparisons", "data", id, "nodes", unit, list, anchor],
    queryFn: ({ pageParam, signal }) =>
      ask<Page<NodeRow>>(
        apiUrl(["comparisons", id, "nodes"], { ...listParams(unit as Unit, list), ...pageParam, limit: PAGE_ROWS }),
        { signal },
      ),
    initialPageParam: { cursor: null, around: anchor },
    getNextPageParam: (last) => (last.next ? { cursor: last.next, around: null } : undefined),
    getPreviousPageParam: (first) => (first.prev ? { cursor: first.prev, around: null } : undefined),
    maxPages: MAX_PAGES,
    enabled: unit !== null,
    placeholderData: keepPreviousData,
  });
}

/** A few rows of the list around a node, outside the cache of the list. */
export function fetchNodes(id: string, unit: Unit, list: NodeListQuery, around: string | null, limit: number) {
  return ask<Page<NodeRow>>(apiUrl(["comparisons", id, "nodes"], { ...listParams(unit, list), around, limit }));
}

export function useNode(id: string, unit: Unit | null, name: string | null) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "node", unit, name],
    queryFn: ({ signal }) =>
      ask<NodeDetail>(apiUrl(["comparisons", id, "nodes", name as string], { ...unit }), { signal }),
    enabled: unit !== null && name !== null,
    placeholderData: keepPreviousData,
  });
}

export function usePair(id: string, pair: number | null) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "pair", pair],
    queryFn: ({ signal }) =>
      ask<Pair & { detail: PairDetail | null }>(apiUrl(["comparisons", id, "pairs", pair as number]), { signal }),
    enabled: pair !== null,
  });
}

export interface FigureQuery {
  name: string;
  node: string | null;
  pair: number | null;
  log: boolean;
}

export function useFigure(id: string, unit: Unit | null, { name, node, pair, log }: FigureQuery) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "figure", name, unit, node, pair, log],
    queryFn: ({ signal }) =>
      ask<FigureReply>(
        apiUrl(["comparisons", id, "figures", name], { ...unit, node, pair, log: log ? "true" : null }),
        { signal },
      ),
    enabled: unit !== null,
    placeholderData: keepPreviousData,
  });
}

export function fetchTree(noun: Noun, id: string, unit: Unit, parent: number | null, cursor: string | null) {
  return ask<Page<TreeRow>>(apiUrl([noun, id, "tree"], { ...unit, parent, cursor, limit: PAGE_ROWS }));
}

export function fetchReveal(noun: Noun, id: string, unit: Unit, name: string) {
  return ask<{ path: number[] }>(apiUrl([noun, id, "tree"], { ...unit, reveal: name }));
}

export function useDumpNodes(id: string, unit: Unit | null, query: string) {
  return useInfiniteQuery({
    queryKey: ["dumps", "data", id, "nodes", unit, query],
    queryFn: ({ pageParam, signal }) =>
      ask<Page<DumpNodeRow>>(
        apiUrl(["dumps", id, "nodes"], { ...unit, q: query, cursor: pageParam, limit: PAGE_ROWS }),
        {
          signal,
        },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    enabled: unit !== null,
    placeholderData: keepPreviousData,
  });
}

export function useDumpNode(id: string, unit: Unit | null, name: string | null) {
  return useQuery({
    queryKey: ["dumps", "data", id, "node", unit, name],
    queryFn: ({ signal }) => ask<DumpNode>(apiUrl(["dumps", id, "nodes", name as string], { ...unit }), { signal }),
    enabled: unit !== null && name !== null,
    placeholderData: keepPreviousData,
  });
}

/** A change to one noun; lists and records of it are read again afterwards. */
function useChange<In, Out>(noun: Noun, change: (input: In) => Promise<Out>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSuccess: () => client.invalidateQueries({ queryKey: [noun] }) });
}

export function useRegisterDump() {
  return useChange("dumps", (body: { path: string; name?: string }) =>
    ask<Accepted>(apiUrl(["dumps"]), { method: "POST", body }),
  );
}

export function useRename(noun: Noun) {
  return useChange(noun, ({ id, name }: { id: string; name: string }) =>
    ask<unknown>(apiUrl([noun, id]), { method: "PATCH", body: { name } }),
  );
}

export function useDelete(noun: Noun) {
  return useChange(noun, (id: string) => ask<void>(apiUrl([noun, id]), { method: "DELETE" }));
}

export interface CompareRequest {
  target: string;
  golden: string;
  options?: Record<string, unknown>;
}

export function useCompare() {
  return useChange("comparisons", (body: CompareRequest) =>
    ask<Accepted>(apiUrl(["comparisons"]), { method: "POST", body }),
  );
}

export function useSetPolicy(id: string) {
  return useChange("comparisons", (policy: string) =>
    ask<Comparison>(apiUrl(["comparisons", id]), { method: "PATCH", body: { policy } }),
  );
}

export function useCancel() {
  return useChange("comparisons", (id: string) =>
    ask<Comparison>(apiUrl(["comparisons", id, "cancel"]), { method: "POST" }),
  );
}

export function exportUrl(id: string, format: string): string {
  return apiUrl(["comparisons", id, `export.${format}`]);
}

/** Everything about one comparison may have changed: a job finished, a policy was set. */
export function refreshComparison(client: QueryClient): void {
  void client.invalidateQueries({ queryKey: ["comparisons"] });
}
