import { useDump } from "../../../api/records";
import { formatCount, formatRuns } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import classes from "../HomeView.module.css";

/** Facts about a dump, shown before anything is compared. */
export function DumpFacts({ id }: { id: string }) {
  const { t } = useTranslation();
  const dump = useDump(id).data;
  if (dump?.status !== "ready") return null;
  const { framework, task, level, steps, ranks, nodes, problems } = dump;
  const parts = [
    [framework, task, level].filter(Boolean).join(" "),
    t("home.detected.steps", { count: steps.length, numbers: formatRuns(steps) }),
    ranks.length > 0 && t("home.detected.ranks", { count: ranks.length, numbers: formatRuns(ranks) }),
    t("home.detected.calls", { count: nodes, total: formatCount(nodes) }),
    problems.length > 0 && t("home.detected.problems", { count: problems.length }),
  ];
  return (
    <span className={`${classes.detected} dim`} data-testid="detected">
      {parts.filter(Boolean).join(" · ")}
    </span>
  );
}
