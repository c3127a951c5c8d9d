import { CloseButton } from "@mantine/core";
import { type Shown, useMonitorFigure } from "../../api/monitors";
import type { Monitor, MonitorRuns } from "../../api/types";
import { dumpedFrom } from "../../base/numbers/dumpedSteps";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../../widgets/basic/MiddleName";
import { Link } from "../../widgets/basic/navigation";
import { Failure, Loading } from "../../widgets/basic/States";
import { Figure } from "../../widgets/plots/Figure";
import classes from "./Monitors.module.css";
import { type Choice, changeMonitor, useMonitorWords } from "./monitorWords";

interface CurvePanelProps {
  row: Monitor;
  runs: MonitorRuns;
  choice: Choice;
  shown: Shown;
}

/** The chosen series over the steps, those of the other run beside them. */
export function CurvePanel({ row, runs, choice, shown }: CurvePanelProps) {
  const { t } = useTranslation();
  const words = useMonitorWords();
  const { data, error, isPending, isPlaceholderData, refetch } = useMonitorFigure(
    row.id,
    shown,
    choice.series,
    choice.step,
  );
  const what = `${words.metric(choice.metric)} · ${words.statistic(choice.statistic)}`;
  const beside = runs.dumps.flatMap((dump) => {
    const step = choice.step === null ? null : dumpedFrom(dump.steps, choice.step);
    return step === null ? [] : [{ ...dump, step }];
  });
  return (
    <section className={`panel ${classes.curve}`} aria-label={t("monitors.curves")} data-testid="monitor-curve">
      <div className={classes.curveHead}>
        <h2>{what}</h2>
        <ul className={classes.chosen}>
          {choice.series.map((name) => (
            <li key={name}>
              <span className="mono">
                <MiddleName name={name} tail={40} />
              </span>
              <CloseButton
                size="xs"
                aria-label={t("monitors.leaveOut", { name })}
                onClick={() =>
                  changeMonitor({ series: choice.series.filter((one) => one !== name), step: choice.step })
                }
              />
            </li>
          ))}
        </ul>
        {choice.step !== null && (
          <span className="dim num">
            {t("unit.step")} {choice.step}
          </span>
        )}
        {beside.map((dump) => (
          <Link key={dump.id} to={`dumps/${encodeURIComponent(dump.id)}`} search={`s=${dump.step}&r=${choice.rank}`}>
            {dump.step === choice.step
              ? t("monitors.dump", { name: dump.name })
              : t("monitors.dumpAt", { name: dump.name, step: dump.step })}
          </Link>
        ))}
      </div>
      {isPending && <Loading />}
      {error && <Failure problem={error} onRetry={() => void refetch()} />}
      {data && !error && (
        <div className={classes.plot} aria-busy={isPlaceholderData}>
          <Figure
            reply={data}
            label={what}
            name={`${choice.metric}/${choice.statistic}/${choice.series.join()}/${choice.rank}`}
          />
        </div>
      )}
    </section>
  );
}
