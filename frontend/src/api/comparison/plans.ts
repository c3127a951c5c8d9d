/** Plans of how ranks are joined: checked, tried and taken along, as hooks. */
import { useMutation } from "@tanstack/react-query";
import { api, apiUrl, readReply } from "../client";
import type { ComparisonOptions, PlanPreview, PlanTrial } from "../types";

export interface Sides {
  target: string;
  golden: string;
}

/** Completes and checks the text of a plan; `{}` has one found. */
export function useCheckPlan({ target, golden }: Sides) {
  return useMutation({
    mutationFn: (plan: string): Promise<PlanPreview> =>
      readReply(api().POST("/api/plans", { body: { target, golden, plan } })),
  });
}

export interface Trying {
  plan: string;
  options: ComparisonOptions;
  unit: number | null;
  q: string;
  copies: boolean;
}

/** What a plan would join, before anything is compared. */
export function useTryPlan({ target, golden }: Sides) {
  return useMutation({
    mutationFn: (trying: Trying): Promise<PlanTrial> =>
      readReply(api().POST("/api/plans/try", { body: { target, golden, ...trying } })),
  });
}

export function planUrl(id: string): string {
  return apiUrl("comparisons", id, "plan.yaml");
}
