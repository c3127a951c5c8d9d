import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useJob } from "../../api/jobs";
import {
  useCancelMonitor,
  useExamineMonitor,
  useMonitor,
  useMonitorAnomalies,
  useMonitorFindings,
  useMonitorRuns,
} from "../../api/monitors";
import type { Monitor, MonitorFindings, MonitorRuns } from "../../api/types";
import { parseMonitorAddress } from "../../base/address/monitor";
import { formatRuns } from "../../base/numbers/format";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { JobBar } from "../../widgets/basic/JobBar";
import { Link, useLocation } from "../../widgets/basic/navigation";
import { Notes, ProblemList } from "../../widgets/basic/Problems";
import { Failure, Loading } from "../../widgets/basic/States";
import { usePainted } from "../../widgets/late/painted";
import { Header } from "../../widgets/page/Header";
import { AnomalyList } from "./AnomalyList";
import { CurvePanel } from "./CurvePanel";
import { HeatPanel } from "./HeatPanel";
import classes from "./Monitors.module.css";
import { chooseShown } from "./monitorWords";

/** A monitored run: one sentence, what stands out, a map of series and steps, and curves. */
export function MonitorView({ id }: { id: string }) {
  const { t } = useTranslation();
  const query = useMonitor(id);
  usePainted(!query.isPending);
  const row = query.data;
  return (
    <div className={classes.screen}>
      <Header>
        <bdi className={classes.heading}>{row?.name}</bdi>
      </Header>
      <main id="main" className={classes.main} tabIndex={-1}>
        <h1 className="sr">{t("monitors.title")}</h1>
        {query.isPending && <Loading />}
        {query.error && <Failure problem={query.error} onRetry={() => void query.refetch()} />}
        {row && <Body row={row} />}
      </main>
    </div>
  );
}

function Body({ row }: { row: Monitor }) {
  const unread = row.status === "failed" && row.examined === null;
  const runs = useMonitorRuns(row.id, row.examined, !unread);
  const findings = useMonitorFindings(row.id, row.examined);
  useAgain(row, !runs.isPlaceholderData && (runs.data?.grown ?? false));
  return (
    <>
      <Answer row={row} runs={runs.data} findings={findings.data} />
      {runs.isLoading && <Loading />}
      {runs.error && !runs.data && !unread && <Failure problem={runs.error} onRetry={() => void runs.refetch()} />}
      {runs.data && (row.examined === null || findings.data !== undefined) && (
        <Panels row={row} runs={runs.data} findings={findings.data} />
      )}
    </>
  );
}

/** Seconds between two examinations of a run that grows, and how much longer than one of them it is at least. */
const PAUSE = 15;
const TIMES = 20;

/** While the page is open, a run that has grown is examined again, seldom enough that it costs little. */
function useAgain(row: Monitor, grown: boolean): void {
  const { mutate } = useExamineMonitor();
  const seen = useRef({ examined: row.examined, at: 0 });
  if (seen.current.examined !== row.examined) seen.current = { examined: row.examined, at: Date.now() };
  const due = grown && row.status === "done";
  const pause = Math.max(PAUSE, TIMES * (row.seconds ?? 0)) * 1000;
  const { id } = row;
  useEffect(() => {
    if (!due) return;
    const timer = setTimeout(() => mutate(id), Math.max(0, seen.current.at + pause - Date.now()));
    return () => clearTimeout(timer);
  }, [due, pause, id, mutate]);
}

interface AnswerProps {
  row: Monitor;
  runs: MonitorRuns | undefined;
  findings: MonitorFindings | undefined;
}

function Answer({ row, runs, findings }: AnswerProps) {
  const { t } = useTranslation();
  const again = useExamineMonitor();
  const problems = findings?.problems ?? [];
  const more = (findings?.strays ?? []).slice(1);
  const ended = row.status === "failed" || row.status === "cancelled";
  return (
    <section className={`panel ${classes.answer}`} aria-label={t("monitors.answer")}>
      {row.summary !== null && (
        <p className={classes.sentence} data-testid="monitor-summary">
          {say(row.summary, row.said)}
        </p>
      )}
      {more.map((stray) => (
        <p key={`${stray.rank} ${stray.metric}`}>{say("", stray.said)}</p>
      ))}
      {row.status === "failed" && <Failure problem={row.error} />}
      {row.status === "cancelled" && <p>{t("monitors.cancelled")}</p>}
      {row.status === "pending" && <Running row={row} />}
      <div className={`${classes.facts} dim`}>
        <span>
          <bdi className="mono">{row.path}</bdi>
          {row.other !== null && (
            <>
              {" · "}
              <bdi className="mono">{row.other}</bdi>
            </>
          )}
        </span>
        {runs && <Reach runs={runs} />}
        {problems.length > 0 && (
          <Notes label={t("monitors.problems", { count: problems.length })} testId="monitor-problems">
            <ProblemList problems={problems} />
          </Notes>
        )}
        {(ended || (runs?.grown && row.status === "done")) && (
          <Button
            variant="default"
            size="compact-xs"
            loading={again.isPending}
            onClick={() => again.mutate(row.id)}
            data-testid="examine-again"
          >
            {t("monitors.again")}
          </Button>
        )}
        {ended && row.summary === null && <Link to="">{t("app.backHome")}</Link>}
      </div>
      {again.error && <Failure problem={again.error} />}
    </section>
  );
}

function Reach({ runs }: { runs: MonitorRuns }) {
  const { t } = useTranslation();
  const { ranks } = runs.run;
  const first = Math.min(...ranks.map((one) => one.first_step));
  const last = Math.max(...ranks.map((one) => one.last_step));
  return (
    <span className="num" data-testid="monitor-reach">
      {t("monitors.reach", { first, last, ranks: formatRuns(ranks.map((one) => one.rank)) })}
      {runs.grown && ` ${t("monitors.grown")}`}
    </span>
  );
}

function Running({ row }: { row: Monitor }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const job = useJob(row.job, () => void client.invalidateQueries({ queryKey: ["monitors"] }));
  const cancel = useCancelMonitor();
  return (
    <>
      <JobBar
        job={job}
        label={t("monitors.running")}
        onCancel={() => cancel.mutate(row.id)}
        cancelling={cancel.isPending}
      />
      {cancel.error && <Failure problem={cancel.error} />}
    </>
  );
}

function Panels({ row, runs, findings }: { row: Monitor; runs: MonitorRuns; findings: MonitorFindings | undefined }) {
  const address = parseMonitorAddress(useLocation().search);
  const gravest = useMonitorAnomalies(row.id, row.examined, "", "gravest");
  const worst = gravest.data?.pages[0]?.items[0];
  const choice = chooseShown(address, runs, findings, worst);
  const reach = runs.run.ranks.find((one) => one.rank === choice.rank)?.last_step ?? 0;
  const { rank, metric, statistic } = choice;
  const shown = { rank, metric, statistic, from: address.first, to: address.last, reach };
  const listed = (findings?.anomalies ?? 0) > 0;
  if (metric === "" || (row.examined !== null && gravest.isPending)) return <Loading />;
  return (
    <div className={classes.split} data-listed={listed || undefined}>
      <HeatPanel row={row} runs={runs} address={address} choice={choice} shown={shown} />
      {choice.series.length > 0 && <CurvePanel row={row} runs={runs} choice={choice} shown={shown} />}
      {listed && <AnomalyList row={row} address={address} choice={choice} />}
    </div>
  );
}
