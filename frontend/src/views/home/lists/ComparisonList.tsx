import { Progress } from "@mantine/core";
import { memo, useMemo } from "react";
import { useJob } from "../../../api/jobs";
import { useComparisons } from "../../../api/records";
import type { Comparison } from "../../../api/types";
import { formatMoment } from "../../../base/numbers/dates";
import { formatCount } from "../../../base/numbers/format";
import type { Translate } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Link } from "../../../widgets/basic/navigation";
import { describeProblem } from "../../../widgets/basic/States";
import { ClassMark, VerdictMark } from "../../../widgets/marks/Mark";
import { NotifyButton } from "../../../widgets/watch/NotifyButton";
import classes from "../HomeView.module.css";
import { FirstSteps } from "./FirstSteps";
import { type Column, RecordList } from "./RecordList";
import { RowActions } from "./RowActions";

export const ComparisonList = memo(function ComparisonList() {
  const { t, language } = useTranslation();
  const columns = useMemo(() => columnsIn(t, language), [t, language]);
  return (
    <RecordList
      title={t("home.comparisons")}
      searchLabel={t("home.searchComparisons")}
      testId="comparisons"
      useRows={useComparisons}
      columns={columns}
      action={<NotifyButton />}
      empty={<FirstSteps />}
    />
  );
});

function columnsIn(t: Translate, language: string): Column<Comparison>[] {
  return [
    { key: "name", title: t("home.columns.name"), orders: ["name"], cell: (row) => <Name row={row} /> },
    {
      key: "verdict",
      title: t("home.columns.verdict"),
      cell: (row) => row.verdict && <Reached row={row} verdict={row.verdict} />,
    },
    { key: "origin", title: t("home.columns.origin"), cell: (row) => <FirstOrigin row={row} /> },
    { key: "status", title: t("home.columns.status"), cell: (row) => <Status row={row} /> },
    {
      key: "created",
      title: t("home.columns.created"),
      orders: ["-created", "created"],
      cell: (row) => <span className="dim">{formatMoment(row.created, language)}</span>,
    },
    {
      key: "actions",
      title: t("home.columns.actions"),
      hidden: true,
      number: true,
      cell: (row) => <RowActions noun="comparisons" id={row.id} name={row.name} label={shownName(t, row)} />,
    },
  ];
}

/** A default name of the server is translated; a name given by a user is shown as it is. */
function shownName(t: Translate, row: Comparison): string {
  const { name, target_name: target, golden_name: golden } = row;
  return name === "" || name === `${target} against ${golden}` ? t("home.sides", { target, golden }) : name;
}

function Name({ row }: { row: Comparison }) {
  const { t } = useTranslation();
  const sides = t("home.sides", { target: row.target_name, golden: row.golden_name });
  const name = shownName(t, row);
  return (
    <>
      <div className={classes.name}>
        <Link to={`comparisons/${encodeURIComponent(row.id)}`} title={name}>
          <bdi>{name}</bdi>
        </Link>
      </div>
      {row.watched && (
        <div className={classes.sub} title={t("watch.madeHint")} data-testid="made-by-watch">
          {t("watch.made")}
        </div>
      )}
      {name !== sides && (
        <div className={classes.sub} title={sides}>
          <bdi>{sides}</bdi>
        </div>
      )}
    </>
  );
}

/** Shows when only few items were compared, so a Yes is not taken for the whole run. */
function Reached({ row, verdict }: { row: Comparison; verdict: NonNullable<Comparison["verdict"]> }) {
  const { t } = useTranslation();
  const { items, unmatched_target: target, unmatched_golden: golden } = row.counts ?? NO_COUNTS;
  const compared = items - target - golden;
  return (
    <>
      <VerdictMark verdict={verdict} />
      {row.growing && row.growing.length > 0 && (
        <span className={classes.some} data-testid="row-provisional">
          {t("watch.provisional")}
        </span>
      )}
      {verdict === "yes" && row.origin?.kind === "structure" && (
        <span className={classes.some} data-testid="structure-differs">
          {t("home.structureDiffers")}
        </span>
      )}
      {row.outcome === "not_fully_judged" && (
        <span className={classes.some} data-testid="not-fully-judged">
          {t("coverage.outcome")}
        </span>
      )}
      {compared * 2 < items && (
        <span className={classes.some} title={t("home.someComparedHint")} data-testid="some-compared">
          {t("home.someCompared", { compared: formatCount(compared), total: formatCount(items) })}
        </span>
      )}
    </>
  );
}

const NO_COUNTS = { items: 0, unmatched_target: 0, unmatched_golden: 0 };

function FirstOrigin({ row }: { row: Comparison }) {
  const { t } = useTranslation();
  if (row.origin) {
    return (
      <span className={classes.origin}>
        <ClassMark cls="origin" />
        <MiddleName name={row.origin.node} />
      </span>
    );
  }
  return row.status === "done" ? <span className="dim">{t("home.noOrigin")}</span> : null;
}

function Status({ row }: { row: Comparison }) {
  const { t } = useTranslation();
  const busy = row.status === "pending" || row.status === "running";
  // A waiting job has no progress, so it is not polled: a long queue then costs no more requests than running jobs.
  const job = useJob(row.status === "running" ? row.job : null, () => undefined);
  if (busy) {
    const share = Math.round((job?.progress ?? 0) * 100);
    return (
      <span className={classes.busy}>
        <Progress value={share} w={70} size="sm" aria-label={t(`app.status.${row.status}`)} />
        <span className="num dim">{share}%</span>
      </span>
    );
  }
  const title = row.status === "failed" ? describeProblem(row.error).detail : undefined;
  return (
    <span className={row.status === "failed" ? classes.failed : "dim"} title={title}>
      {t(`app.status.${row.status}`)}
    </span>
  );
}
