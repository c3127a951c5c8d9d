/** The answer of a comparison: summary, origins, and the plan of its ranks. */
import { useQuery } from "@tanstack/react-query";
import { api, take } from "../client";
import { of } from "../records";

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
