import { Button, Tooltip } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useDumps } from "../../api/queries";
import type { Dump } from "../../api/types";
import { formatMoment } from "../../base/moments";
import { formatBytes, formatCount, formatRuns } from "../../base/numbers";
import { Link } from "../../widgets/place";
import { describeProblem } from "../../widgets/States";
import { useDebounced } from "../../widgets/useDebounced";
import { COMPARE_FORM, type Picked } from "./CompareForm";
import classes from "./HomeView.module.css";
import { ListFrame } from "./ListFrame";
import { RowActions } from "./RowActions";

interface DumpListProps {
  picked: Picked;
  onPick: (picked: Picked) => void;
}

export function DumpList({ picked, onPick }: DumpListProps) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const query = useDumps(useDebounced(text.trim(), 250));
  const rows = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <ListFrame
      title={t("home.dumps")}
      searchLabel={t("home.searchDumps")}
      search={text}
      onSearch={setText}
      query={query}
      shown={rows.length}
      total={query.data?.pages[0]?.total ?? 0}
      testId="dumps"
      action={
        picked.target &&
        picked.golden && (
          <Button type="submit" form={COMPARE_FORM} size="compact-xs">
            {t("home.compareBoth", { target: picked.target.name, golden: picked.golden.name })}
          </Button>
        )
      }
      empty={
        <>
          {t("home.noDumps")}
          <pre>dumpscope serve --root /path/to/dumps</pre>
        </>
      }
    >
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">{t("home.columns.name")}</th>
            <th scope="col">{t("home.columns.pick")}</th>
            <th scope="col">{t("home.columns.task")}</th>
            <th scope="col">{t("home.columns.level")}</th>
            <th scope="col">{t("home.columns.steps")}</th>
            <th scope="col">{t("home.columns.ranks")}</th>
            <th scope="col" className="num">
              {t("home.columns.nodes")}
            </th>
            <th scope="col" className="num">
              {t("home.columns.size")}
            </th>
            <th scope="col" className="num">
              {t("home.columns.problems")}
            </th>
            <th scope="col">{t("home.columns.created")}</th>
            <th scope="col">
              <span className="sr">{t("home.columns.actions")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.id} row={row} picked={picked} onPick={onPick} />
          ))}
        </tbody>
      </table>
    </ListFrame>
  );
}

function Row({ row, picked, onPick }: { row: Dump } & DumpListProps) {
  const { t, i18n } = useTranslation();
  const side = (which: "target" | "golden") => {
    const pressed = picked[which]?.id === row.id;
    return (
      <button
        type="button"
        className={`plain ${classes.side}`}
        aria-pressed={pressed}
        aria-label={t(which === "target" ? "home.useAsTarget" : "home.useAsGolden", { name: row.name })}
        disabled={row.status !== "ready"}
        onClick={() => onPick({ ...picked, [which]: pressed ? null : { id: row.id, name: row.name } })}
      >
        {t(`comparison.${which}`)}
      </button>
    );
  };
  return (
    <tr data-id={row.id}>
      <td>
        <div className={classes.name}>
          <Link to={`dumps/${encodeURIComponent(row.id)}`} title={row.name}>
            <bdi>{row.name}</bdi>
          </Link>
        </div>
        <div className={classes.sub} title={row.path}>
          <bdi>{row.path}</bdi>
        </div>
      </td>
      <td>
        {row.status === "ready" ? (
          <span className={classes.pick}>
            {side("target")}
            {side("golden")}
          </span>
        ) : (
          <StatusWord row={row} />
        )}
      </td>
      <td>{row.task ?? ""}</td>
      <td>{row.level ?? ""}</td>
      <td className="num" style={{ textAlign: "left" }}>
        {formatRuns(row.steps)}
      </td>
      <td className="num" style={{ textAlign: "left" }}>
        {formatRuns(row.ranks)}
      </td>
      <td className="num">{formatCount(row.nodes)}</td>
      <td className="num">{formatBytes(row.bytes)}</td>
      <td className="num">
        {row.problems.length > 0 ? (
          <Tooltip
            label={row.problems
              .slice(0, 5)
              .map((problem) => `${problem.loc}: ${problem.message}`)
              .join("\n")}
          >
            <span style={{ color: "var(--propagated)" }}>⚠ {row.problems.length}</span>
          </Tooltip>
        ) : (
          <span className="dim">0</span>
        )}
      </td>
      <td className="dim" style={{ whiteSpace: "nowrap" }}>
        {formatMoment(row.created, i18n.language)}
      </td>
      <td className="num">
        <RowActions noun="dumps" id={row.id} name={row.name} />
      </td>
    </tr>
  );
}

function StatusWord({ row }: { row: Dump }) {
  const { t } = useTranslation();
  if (row.status !== "failed") return <span className="dim">{t(`app.status.${row.status}`)}…</span>;
  const { detail, hint } = describeProblem(row.error);
  return (
    <span style={{ color: "var(--origin)" }} title={hint ? `${detail}\n${hint}` : detail}>
      {t("app.status.failed")}
    </span>
  );
}
