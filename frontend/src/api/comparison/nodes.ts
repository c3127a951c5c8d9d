/** Calls of a comparison: rows of the list, one call, its data flow, one tensor pair. */
import { keepPreviousData, type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";
import type { Filter, Sort } from "../../base/address/address";
import { IN_FILE } from "../../base/inFile";
import { api, readReply } from "../client";
import { comparisonPath, type Unit } from "../records";
import type { Flow, NodeRow, Page } from "../types";

/** Most buckets the server cuts a run into. */
export const MOST_BUCKETS = 1500;

export function useStrip(id: string, unit: Unit | null, buckets: number) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "strip", unit, buckets],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/strip", {
          params: { path: comparisonPath(id), query: { ...unit, buckets: Math.min(buckets, MOST_BUCKETS) } },
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

/** A list as parameters of a request. */
export function listParams(unit: Unit | null, { filter, query, sort }: NodeListQuery) {
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
  const params = { path: comparisonPath(id), query };
  return readReply(api().GET("/api/comparisons/{comparison_id}/nodes", { params, ...(signal ? { signal } : {}) }));
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

/** How many calls each entry of the filter would show. */
export function useFilterCounts(
  id: string,
  unit: Unit | null,
  list: Pick<NodeListQuery, "filter" | "query">,
  wanted: boolean,
) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "counts", unit, list],
    queryFn: ({ signal }) => {
      const { sort: _, ...query } = listParams(unit, { ...list, sort: "order" });
      return readReply(
        api().GET("/api/comparisons/{comparison_id}/counts", { params: { path: comparisonPath(id), query }, signal }),
      );
    },
    enabled: wanted && unit !== null,
    placeholderData: keepPreviousData,
  });
}

/** Calls whose name has a text, the worst class first. */
export async function fetchByName(id: string, unit: Unit, text: string, limit: number): Promise<readonly NodeRow[]> {
  const query = { ...unit, q: `name:"${text.replaceAll('"', "")}"`, sort: "-class" as const, limit };
  return (
    await readReply(
      api().GET("/api/comparisons/{comparison_id}/nodes", { params: { path: comparisonPath(id), query } }),
    )
  ).items;
}

export function nodeOptions(id: string, unit: Unit | null, name: string | null) {
  return queryOptions({
    queryKey: ["comparisons", "data", id, "node", unit, name],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/nodes/{name}", {
          params: { path: { ...comparisonPath(id), name: name ?? "" }, query: { ...unit } },
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
      readReply(
        api().GET("/api/comparisons/{comparison_id}/nodes/{name}/flow", {
          params: { path: { ...comparisonPath(id), name }, query: { ...unit } },
          signal,
        }),
      ),
  };
}

/** One hop of data flow around a node. */
export function useFlow(id: string, unit: Unit | null, name: string) {
  return useQuery({ ...flowOptions(id, unit, name), enabled: unit !== null });
}

/** The same outside of rendering, from the cache if it is there. */
export function fetchFlow(client: QueryClient, id: string, unit: Unit, name: string): Promise<Flow> {
  return client.fetchQuery({ ...flowOptions(id, unit, name), staleTime: Number.POSITIVE_INFINITY });
}

/** The source around the line that made a call, of both sides. A page in a file holds none. */
export function useSource(id: string, unit: Unit | null, name: string) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "source", unit, name],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/nodes/{name}/source", {
          params: { path: { ...comparisonPath(id), name }, query: { ...unit } },
          signal,
        }),
      ),
    enabled: unit !== null && !IN_FILE,
    placeholderData: keepPreviousData,
  });
}

/** Some calls around a node, at most so many steps of data flow away. */
export function usePath(id: string, unit: Unit | null, name: string | null, hops: number) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "path", unit, name, hops],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/nodes/{name}/path", {
          params: { path: { ...comparisonPath(id), name: name ?? "" }, query: { ...unit, hops } },
          signal,
        }),
      ),
    enabled: unit !== null && name !== null,
    placeholderData: keepPreviousData,
  });
}

export function usePair(id: string, pair: number) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "pair", pair],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/pairs/{pair_id}", {
          params: { path: { ...comparisonPath(id), pair_id: pair } },
          signal,
        }),
      ),
  });
}
