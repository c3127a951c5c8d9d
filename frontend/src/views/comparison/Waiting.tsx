import { useQueryClient } from "@tanstack/react-query";
import { useCancel } from "../../api/changes";
import { useJob } from "../../api/jobs";
import { isBusy, refreshComparison } from "../../api/records";
import type { Comparison } from "../../api/types";
import { useTranslation } from "../../texts/useTranslation";
import { JobBar } from "../../widgets/basic/JobBar";
import { Link } from "../../widgets/basic/navigation";
import { Failure } from "../../widgets/basic/States";
import { NotifyButton } from "../../widgets/watch/NotifyButton";
import { Again } from "./Again";
import classes from "./ComparisonView.module.css";

/** A comparison that has no result, or none yet. */
export function Waiting({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const busy = isBusy(comparison);
  const job = useJob(busy ? comparison.job : null, () => refreshComparison(client));
  const cancel = useCancel();
  const early = job?.provisional ?? null;
  return (
    <>
      {busy && (
        <section className="panel">
          <JobBar
            job={job}
            label={t("comparison.running")}
            onCancel={() => cancel.mutate(comparison.id)}
            cancelling={cancel.isPending}
          />
          {early && (
            <p className={classes.early} aria-live="polite" data-testid="provisional">
              <strong>{t("comparison.early")}</strong> <span className="mono">{early}</span>
              <span className="dim"> {t("comparison.earlyHint")}</span>
            </p>
          )}
          <p className={`${classes.hint} dim`}>{t("comparison.provisional")}</p>
          <NotifyButton />
          {cancel.error && <Failure problem={cancel.error} />}
        </section>
      )}
      <Ended comparison={comparison} />
    </>
  );
}

/** What became of a comparison without result, and the way on. */
function Ended({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  if (comparison.status === "cancelled") {
    return (
      <section className={`panel ${classes.ended}`} data-testid="cancelled">
        <p>{t("comparison.cancelled")}</p>
        <Again comparison={comparison} main />
      </section>
    );
  }
  if (comparison.status !== "failed") return null;
  return (
    <Failure title={t("comparison.failed")} problem={comparison.error} remedy={t("comparison.failedHint")}>
      <p className={classes.sides}>
        <DumpLink id={comparison.target} name={comparison.target_name} />
        <DumpLink id={comparison.golden} name={comparison.golden_name} />
      </p>
      <Again comparison={comparison} />
    </Failure>
  );
}

function DumpLink({ id, name }: { id: string; name: string }) {
  const { t } = useTranslation();
  return <Link to={`dumps/${encodeURIComponent(id)}`}>{t("comparison.openDump", { name })}</Link>;
}
