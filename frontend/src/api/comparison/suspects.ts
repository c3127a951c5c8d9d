/** Calls to look at, and the calls that inherit a call's difference. */
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { api, readReply } from "../client";
import { comparisonPath, type Unit } from "../records";
import { MOST_BUCKETS } from "./nodes";

/** Most rows of the tree that may be asked for at once. */
const MOST_ENTRIES = 500;

export function suspectsOptions(id: string, unit: Unit | null) {
  return queryOptions({
    queryKey: ["comparisons", "data", id, "suspects", unit],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/suspects", {
          params: { path: comparisonPath(id), query: { ...unit } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useSuspectList(id: string, unit: Unit | null) {
  return useQuery({ ...suspectsOptions(id, unit), enabled: unit !== null, placeholderData: keepPreviousData });
}

interface Places {
  /** Buckets that the strip has. */
  buckets?: number;
  /** Rows of the tree. */
  entries?: readonly number[];
}

/** What inherits the difference of a call; null: of none. */
export function useReach(id: string, unit: Unit | null, name: string | null, { buckets, entries }: Places) {
  const asked = entries?.slice(0, MOST_ENTRIES).join(",");
  return useQuery({
    queryKey: ["comparisons", "data", id, "reach", unit, name, buckets ?? null, asked ?? null],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/nodes/{name}/reach", {
          params: {
            path: { ...comparisonPath(id), name: name ?? "" },
            query: {
              ...unit,
              ...(buckets === undefined ? {} : { buckets: Math.min(buckets, MOST_BUCKETS) }),
              ...(asked === undefined ? {} : { entry: [asked] }),
            },
          },
          signal,
        }),
      ),
    enabled: unit !== null && name !== null && buckets !== 0 && asked !== "",
    staleTime: Number.POSITIVE_INFINITY,
  });
}
