/** Matches made by hand, and what matching would do, as hooks. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Side } from "../../base/comparison/sides";
import { api, apiUrl, readReply } from "../client";
import { comparisonPath, type Unit } from "../records";
import type { CompareRequest, Comparison, HandEdits, MatchingPreview, RuleProposals } from "../types";

function handKey(id: string, unit: Unit | null) {
  return ["comparisons", "data", id, "matches", unit];
}

/** Matches made by hand, and what became of each in this step and rank. */
export function useHandMatches(id: string, unit: Unit | null) {
  return useQuery({
    queryKey: handKey(id, unit),
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/matching", {
          params: { path: comparisonPath(id), query: { ...unit } },
          signal,
        }),
      ),
    enabled: unit !== null,
  });
}

export type HandChange =
  | { kind: "match"; target: string; golden: string }
  | { kind: "unmatch"; side: Side; node: string }
  | { kind: "undo" }
  | { kind: "import"; matches: string };

/** Changes the list of matches made by hand; the result changes when it is compared again. */
export function useHandChange(id: string, unit: Unit | null) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (change: HandChange): Promise<HandEdits> => {
      const params = { path: comparisonPath(id), query: { ...unit } };
      switch (change.kind) {
        case "match": {
          const { target, golden } = change;
          const body = { target, golden };
          return readReply(api().POST("/api/comparisons/{comparison_id}/matching/match", { params, body }));
        }
        case "unmatch": {
          const { side, node } = change;
          return readReply(
            api().POST("/api/comparisons/{comparison_id}/matching/unmatch", { params, body: { side, node } }),
          );
        }
        case "import": {
          const body = { matches: change.matches };
          return readReply(api().POST("/api/comparisons/{comparison_id}/matching/import", { params, body }));
        }
        case "undo":
          return readReply(api().POST("/api/comparisons/{comparison_id}/matching/undo", { params }));
      }
    },
    onSuccess: (edits) => {
      client.setQueryData(handKey(id, unit), edits);
      void client.invalidateQueries({ queryKey: handKey(id, unit).slice(0, 4), refetchType: "none" });
    },
  });
}

/** Compares again with the matches made by hand. Its result is gone at once, so nothing asks for it until the job is done. */
export function useApplyMatches(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      readReply(
        api().POST("/api/comparisons/{comparison_id}/matching/apply", { params: { path: comparisonPath(id) } }),
      ),
    onSuccess: ({ job }) => {
      client.setQueryData<Comparison>(["comparisons", "one", id], (row) => row && { ...row, job, status: "pending" });
      void client.invalidateQueries({ queryKey: ["comparisons", "list"] });
    },
  });
}

export function handMatchesUrl(id: string): string {
  return apiUrl("comparisons", id, "matching", "matches.yaml");
}

/** Rename rules for the calls of a step and rank that have no partner. */
export function useProposals(id: string, unit: Unit | null) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "proposals", unit],
    queryFn: ({ signal }): Promise<RuleProposals> =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/matching/proposals", {
          params: { path: comparisonPath(id), query: { ...unit } },
          signal,
        }),
      ),
    enabled: unit !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What a comparison would match with these rename rules in place of its own; null asks nothing. */
export function useRulesPreview(id: string, unit: Unit | null, rules: readonly string[] | null) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "tried", unit, rules],
    queryFn: ({ signal }): Promise<MatchingPreview> =>
      readReply(
        api().POST("/api/comparisons/{comparison_id}/matching/preview", {
          params: { path: comparisonPath(id), query: { ...unit } },
          body: { rename: (rules ?? []).filter((rule) => rule !== "") },
          signal,
        }),
      ),
    enabled: unit !== null && rules !== null,
    retry: false,
  });
}

/** What comparing would match, before anything is compared. */
export function usePreview() {
  return useMutation({
    mutationFn: (body: CompareRequest): Promise<MatchingPreview> =>
      readReply(api().POST("/api/comparisons/preview", { body })),
  });
}
