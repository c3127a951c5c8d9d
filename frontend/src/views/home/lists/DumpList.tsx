import { Button, Tooltip } from "@mantine/core";
import { memo, type ReactNode, useMemo, useState } from "react";
import { useDumps } from "../../../api/records";
import type { Dump, ListOrder } from "../../../api/types";
import { useWatches } from "../../../api/watches";
import { formatMoment } from "../../../base/numbers/dates";
import { formatBytes, formatCount, formatRuns } from "../../../base/numbers/format";
import { sayProblem } from "../../../texts/serverTexts";
import type { Translate } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { Link } from "../../../widgets/basic/navigation";
import { describeProblem } from "../../../widgets/basic/States";
import { WatchButton } from "../../../widgets/watch/WatchButton";
import { WatchLine } from "../../../widgets/watch/WatchLine";
import { COMPARE_FORM } from "../compare/CompareForm";
import classes from "../HomeView.module.css";
import type { SidePicking } from "../useSides";
import { type Column, RecordList } from "./RecordList";
import { RowActions } from "./RowActions";
import { SideButtons } from "./SideButtons";

function useWatchedDumps(query: string, order: ListOrder) {
  return useDumps(query, order, true);
}

export const DumpList = memo(function DumpList({ picked, onPick }: SidePicking) {
  const { t, language } = useTranslation();
  const [only, setOnly] = useState(false);
  const watches = useWatches().data?.total ?? 0;
  const columns = useMemo(() => columnsIn(t, language, { picked, onPick }), [t, language, picked, onPick]);
  return (
    <RecordList
      title={t("home.dumps")}
      searchLabel={t("home.searchDumps")}
      testId="dumps"
      useRows={only && watches > 0 ? useWatchedDumps : useDumps}
      columns={columns}
      action={
        <>
          {watches > 0 && (
            <Tooltip label={t("watch.onlyHint")}>
              <button
                type="button"
                className={`plain ${classes.side}`}
                aria-pressed={only}
                onClick={() => setOnly(!only)}
                data-testid="only-watched"
              >
                {t("watch.only")} {formatCount(watches)}
              </button>
            </Tooltip>
          )}
          {picked.target && picked.golden && (
            <Button type="submit" form={COMPARE_FORM} size="compact-xs">
              {t("home.compareBoth", { target: picked.target.name, golden: picked.golden.name })}
            </Button>
          )}
        </>
      }
      empty={
        <>
          {t("home.noDumps")}
          <pre>dumpscope serve --root /path/to/dumps</pre>
        </>
      }
    />
  );
});

function columnsIn(t: Translate, language: string, { picked, onPick }: SidePicking): Column<Dump>[] {
  return [
    { key: "name", title: t("home.columns.name"), orders: ["name"], cell: (row) => <Name row={row} /> },
    {
      key: "pick",
      title: t("home.columns.pick"),
      cell: (row) =>
        row.status === "ready" ? <SideButtons dump={row} picked={picked} onPick={onPick} /> : <StatusWord row={row} />,
    },
    { key: "task", title: t("home.columns.task"), cell: (row) => row.task },
    { key: "level", title: t("home.columns.level"), cell: (row) => row.level },
    { key: "steps", title: t("home.columns.steps"), cell: (row) => formatRuns(row.steps) },
    { key: "ranks", title: t("home.columns.ranks"), cell: (row) => formatRuns(row.ranks) },
    { key: "nodes", title: t("home.columns.nodes"), number: true, cell: (row) => ifRead(row, formatCount(row.nodes)) },
    { key: "size", title: t("home.columns.size"), number: true, cell: (row) => ifRead(row, formatBytes(row.bytes)) },
    {
      key: "problems",
      title: t("home.columns.problems"),
      number: true,
      cell: (row) => ifRead(row, <ProblemCount row={row} />),
    },
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
      cell: (row) => (
        <>
          <WatchButton dump={row} />
          <RowActions noun="dumps" id={row.id} name={row.name} />
        </>
      ),
    },
  ];
}

/** A fact about a dump; no zero is shown for what is not known yet, or never will be. */
function ifRead(row: Dump, fact: ReactNode): ReactNode {
  if (row.status === "ready") return fact;
  return <span className="dim">{row.status === "failed" ? "—" : "…"}</span>;
}

function Name({ row }: { row: Dump }) {
  return (
    <>
      <div className={classes.name}>
        <Link to={`dumps/${encodeURIComponent(row.id)}`} title={row.name}>
          <bdi>{row.name}</bdi>
        </Link>
      </div>
      <div className={classes.sub} title={row.path}>
        <bdi>{row.path}</bdi>
      </div>
      {row.watch && <WatchLine watch={row.watch} name={row.name} />}
    </>
  );
}

function ProblemCount({ row }: { row: Dump }) {
  const { problems } = row;
  if (problems.length === 0) return <span className="dim">0</span>;
  const lines = problems.slice(0, 5).map((one) => `${one.loc}: ${sayProblem(one) ?? one.message}`);
  return (
    <Tooltip label={lines.join("\n")} multiline style={{ whiteSpace: "pre-line" }} maw={480}>
      <Link to={`dumps/${encodeURIComponent(row.id)}`} className={classes.problems}>
        ⚠ {problems.length}
      </Link>
    </Tooltip>
  );
}

function StatusWord({ row }: { row: Dump }) {
  const { t } = useTranslation();
  if (row.status !== "failed") return <span className="dim">{t(`app.status.${row.status}`)}…</span>;
  const { detail, hint } = describeProblem(row.error);
  return (
    <span className={classes.failed} title={hint ? `${detail}\n${hint}` : detail}>
      {t("app.status.failed")}
    </span>
  );
}
