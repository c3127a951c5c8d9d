import { Button } from "@mantine/core";
import { useCompareAgain } from "../../../api/changes";
import { usePlan } from "../../../api/comparison/summary";
import type { ComparisonOptions } from "../../../api/types";
import { navigate } from "../../../base/address/location";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import { PlanDialog as Dialog } from "../../../widgets/plan/PlanDialog";
import type { DialogProps } from "../dialogs/dialogProps";
import { useShownComparison } from "../selection/result";

/** The editor of the plan; an edited one is compared as a comparison of its own, under the same options otherwise. */
export function PlanDialog({ opened, onClose }: DialogProps) {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const plan = usePlan(comparison.id);
  const again = useCompareAgain();
  const start = (parallel: string) =>
    again.mutate(
      { ...comparison, options: { ...comparison.options, parallel } },
      { onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`) },
    );
  return (
    <Dialog
      opened={opened && plan.isSuccess}
      onClose={onClose}
      sides={comparison}
      options={comparison.options as ComparisonOptions}
      text={plan.data?.joined?.plan ?? null}
      actions={(edited) => (
        <>
          <Button
            disabled={edited === null}
            loading={again.isPending}
            onClick={() => edited !== null && start(edited)}
            data-testid="plan-compare"
          >
            {t("comparison.again")}
          </Button>
          <span className="dim">{t("plan.againHint")}</span>
          {again.error && <Failure problem={again.error} />}
        </>
      )}
    />
  );
}
