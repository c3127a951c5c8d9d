/** How calls go over steps and ranks, and how a dump was run, as hooks. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, readReply } from "./client";
import { comparisonPath, type Unit } from "./records";

export const STATISTICS = ["norm", "max", "min", "mean"] as const;
export type Statistic = (typeof STATISTICS)[number];

export const PARTS = ["output", "input"] as const;
export type Part = (typeof PARTS)[number];

/** Columns of steps asked for at most. */
const BUCKETS = 40;

export interface TrendQuery {
  q: string;
  /** null: the verdict and its error alone. */
  statistic: Statistic | null;
  byRank: boolean;
}

/** Modules over the steps of a comparison. */
export function useTrends(id: string, { q, statistic, byRank }: TrendQuery) {
  return useInfiniteQuery({
    queryKey: ["comparisons", "data", id, "trends", q, statistic, byRank],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/trends", {
          params: {
            path: comparisonPath(id),
            query: { q, cursor: pageParam, buckets: BUCKETS, by_rank: byRank, ...(statistic ? { statistic } : {}) },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
  });
}

/** Modules of one step over all ranks. */
export function useRankMap(id: string, { step, q }: { step: number; q: string }, enabled: boolean) {
  return useInfiniteQuery({
    queryKey: ["comparisons", "data", id, "rank-map", step, q],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/rank-map", {
          params: { path: comparisonPath(id), query: { step, q, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
    enabled,
  });
}

export interface ValueQuery {
  statistic: Statistic;
  part: Part;
  /** A part of the names of modules, or one call by its whole name. */
  q?: string;
  name?: string;
}

/** One statistic of the calls of a dump over its steps. */
export function useDumpTrends(id: string, { statistic, part, q = "", name }: ValueQuery) {
  return useInfiniteQuery({
    queryKey: ["dumps", "data", id, "trends", statistic, part, q, name],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/trends", {
          params: {
            path: { dump_id: id },
            query: {
              statistic,
              part,
              q,
              cursor: pageParam,
              buckets: BUCKETS,
              ...(name === undefined ? {} : { name, kind: "all" }),
            },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
  });
}

/** How one rank of a dump was run; `run` is null if the dump does not say. */
export function useRun(id: string, unit: Unit) {
  return useQuery({
    queryKey: ["dumps", "data", id, "run", unit],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/run", { params: { path: { dump_id: id }, query: { ...unit } }, signal }),
      ),
    placeholderData: keepPreviousData,
  });
}
