import { Button } from "@mantine/core";
import { useApplyMatches, useHandChange, useHandMatches } from "../../../api/comparison/matches";
import { useTranslation } from "../../../texts/useTranslation";
import { describeProblem } from "../../../widgets/basic/States";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Matching.module.css";

/** A bar above the panels while some matches made by hand are not in the result yet. */
export function WaitingMatches() {
  const { t } = useTranslation();
  const { id: comparison } = useShownComparison();
  const { unit, update } = useSelection();
  const edits = useHandMatches(comparison, unit);
  const apply = useApplyMatches(comparison);
  const change = useHandChange(comparison, unit);
  const waiting = edits.data?.waiting ?? 0;
  if (waiting === 0) return null;
  const problem = apply.error ?? change.error;
  return (
    <section className={`panel ${classes.bar}`} aria-label={t("matching.list")} data-testid="matches-wait">
      <span>{t("matching.waiting", { count: waiting })}</span>
      <Button size="compact-xs" loading={apply.isPending} onClick={() => apply.mutate()} data-testid="apply">
        {t("comparison.again")}
      </Button>
      <Button
        size="compact-xs"
        variant="default"
        loading={change.isPending}
        onClick={() => change.mutate({ kind: "undo" })}
        data-testid="undo"
      >
        {t("matching.undo")}
      </Button>
      <Button size="compact-xs" variant="subtle" onClick={() => update({ dialog: "matches" })}>
        {t("matching.show")}
      </Button>
      {problem && <span role="alert">{describeProblem(problem).detail}</span>}
    </section>
  );
}
