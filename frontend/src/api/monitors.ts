/** Monitored runs: start, list, what was found, and their numbers as a map and as curves. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { AnomalySort } from "../base/address/monitor";
import { api, readReply } from "./client";
import type { ListOrder, NewMonitor } from "./types";

const LIST_ROWS = 50;
const ANOMALY_ROWS = 100;
const HEAT_ROWS = 30;
const POLL_MS = 1500;
/** Time between two looks at a run that may grow. */
const LOOK_MS = 5000;

const NOUN = "monitors";

/** Newest first, whatever order is asked for. */
export function useMonitors(q: string, _order: ListOrder = "-created") {
  return useInfiniteQuery({
    queryKey: [NOUN, "list", q],
    queryFn: ({ pageParam, signal }) =>
      readReply(api().GET("/api/monitors", { params: { query: { q, cursor: pageParam, limit: LIST_ROWS } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.items.some((row) => row.status === "pending")) ? POLL_MS : false,
  });
}

export function useMonitor(id: string) {
  return useQuery({
    queryKey: [NOUN, "one", id],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/monitors/{monitor_id}", { params: { path: { monitor_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data?.status === "pending" ? POLL_MS : LOOK_MS),
  });
}

/** Ranks, steps and metrics of both runs, which may grow; whether they have since they were examined. */
export function useMonitorRuns(id: string, examined: string | null, enabled: boolean) {
  return useQuery({
    queryKey: [NOUN, "runs", id, examined],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/monitors/{monitor_id}/runs", { params: { path: { monitor_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.error ? false : LOOK_MS),
    enabled,
    placeholderData: keepPreviousData,
  });
}

/** examined: when the examination ended, null while there is none */
export function useMonitorFindings(id: string, examined: string | null) {
  return useQuery({
    queryKey: [NOUN, "findings", id, examined],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/monitors/{monitor_id}/findings", { params: { path: { monitor_id: id } }, signal })),
    enabled: examined !== null,
    placeholderData: keepPreviousData,
  });
}

export function useMonitorAnomalies(id: string, examined: string | null, q: string, sort: AnomalySort) {
  return useInfiniteQuery({
    queryKey: [NOUN, "anomalies", id, examined, q, sort],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/monitors/{monitor_id}/anomalies", {
          params: { path: { monitor_id: id }, query: { q, sort, cursor: pageParam, limit: ANOMALY_ROWS } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    enabled: examined !== null,
    placeholderData: keepPreviousData,
  });
}

/** What of a run is shown; `reach`: its last step, as what is shown changes with it. */
export interface Shown {
  rank: number;
  metric: string;
  statistic: string;
  from: number | null;
  to: number | null;
  reach: number;
}

interface HeatWanted {
  against: boolean;
  order: "hottest" | "model";
  by: "series" | "module";
  /** Only series of this module. */
  module?: string | null;
  q: string;
  columns: number;
}

export function useMonitorHeat(
  id: string,
  shown: Shown,
  { against, order, by, module = null, q, columns }: HeatWanted,
) {
  const { reach: _, ...query } = shown;
  return useInfiniteQuery({
    queryKey: [NOUN, "heat", id, shown, against, order, by, module, q, columns],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/monitors/{monitor_id}/heat", {
          params: {
            path: { monitor_id: id },
            query: { ...query, against, order, by, module, q, columns, cursor: pageParam, limit: HEAT_ROWS },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    enabled: columns > 0,
    placeholderData: keepPreviousData,
  });
}

export function useMonitorFigure(id: string, shown: Shown, names: readonly string[], step: number | null) {
  const { reach: _, ...query } = shown;
  return useQuery({
    queryKey: [NOUN, "figure", id, shown, names, step],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/monitors/{monitor_id}/curves/figure", {
          params: { path: { monitor_id: id }, query: { ...query, name: [...names], step } },
          signal,
        }),
      ),
    enabled: names.length > 0,
    placeholderData: keepPreviousData,
  });
}

export function useStartMonitor() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: NewMonitor) => readReply(api().POST("/api/monitors", { body })),
    onSuccess: () => client.invalidateQueries({ queryKey: [NOUN, "list"] }),
  });
}

export function useExamineMonitor() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      readReply(api().POST("/api/monitors/{monitor_id}/examine", { params: { path: { monitor_id: id } } })),
    onSuccess: (_reply, id) => client.invalidateQueries({ queryKey: [NOUN, "one", id] }),
  });
}

export function useCancelMonitor() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      readReply(api().POST("/api/monitors/{monitor_id}/cancel", { params: { path: { monitor_id: id } } })),
    onSuccess: (_reply, id) => client.invalidateQueries({ queryKey: [NOUN, "one", id] }),
  });
}

export function useDeleteMonitor() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      readReply(api().DELETE("/api/monitors/{monitor_id}", { params: { path: { monitor_id: id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: [NOUN, "list"] }),
  });
}
