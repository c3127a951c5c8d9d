/** The answer of a comparison: summary, origins, and the plan of its ranks. */
import { useQuery } from "@tanstack/react-query";
import { api, readReply } from "../client";
import { comparisonPath } from "../records";

export function useSummary(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "summary"],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/summary", { params: { path: comparisonPath(id) }, signal }),
      ),
    enabled,
  });
}

export function usePlan(id: string) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "plan"],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/comparisons/{comparison_id}/plan", { params: { path: comparisonPath(id) }, signal })),
  });
}

export function useOrigins(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "origins"],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/origins", { params: { path: comparisonPath(id) }, signal }),
      ),
    enabled,
  });
}
