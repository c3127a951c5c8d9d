import { Button, Progress } from "@mantine/core";
import type { Job } from "../../api/types";
import { formatSeconds } from "../../base/numbers/format";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./JobBar.module.css";

interface JobBarProps {
  job: Job | undefined;
  label: string;
  onCancel?: () => void;
  cancelling?: boolean;
}

/** Progress, message and remaining time of a running job. */
export function JobBar({ job, label, onCancel, cancelling = false }: JobBarProps) {
  const { t } = useTranslation();
  const units = [t("app.units.hours"), t("app.units.minutes"), t("app.units.seconds")] as const;
  const share = Math.round((job?.progress ?? 0) * 100);
  return (
    <div className={classes.bar} data-testid="job">
      <div className={classes.head}>
        <strong>{label}</strong>
        <span className={`${classes.message} dim`} aria-live="polite">
          {job?.status === "queued" ? t("app.status.queued") : say(job?.message ?? "", job?.said)}
        </span>
        {share > 0 && <span className="num">{share}%</span>}
        {job?.eta !== null && job?.eta !== undefined && (
          <span className="dim num">{t("comparison.eta", { time: formatSeconds(job.eta, units) })}</span>
        )}
        {onCancel && (
          <Button variant="default" size="compact-xs" loading={cancelling} onClick={onCancel} data-testid="cancel">
            {t("comparison.cancel")}
          </Button>
        )}
      </div>
      <Progress value={share} size="sm" aria-label={label} animated={share < 100} />
    </div>
  );
}
