import { Progress } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useJob } from "../../api/jobs";
import { useComparisons } from "../../api/queries";
import type { Comparison } from "../../api/types";
import { formatMoment } from "../../base/moments";
import { ClassMark, VerdictMark } from "../../widgets/Mark";
import { MiddleName } from "../../widgets/MiddleName";
import { Link } from "../../widgets/place";
import { describeProblem } from "../../widgets/States";
import { useDebounced } from "../../widgets/useDebounced";
import classes from "./HomeView.module.css";
import { ListFrame } from "./ListFrame";
import { RowActions } from "./RowActions";

export function ComparisonList() {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const query = useComparisons(useDebounced(text.trim(), 250));
  const rows = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <ListFrame
      title={t("home.comparisons")}
      searchLabel={t("home.searchComparisons")}
      search={text}
      onSearch={setText}
      query={query}
      shown={rows.length}
      total={query.data?.pages[0]?.total ?? 0}
      testId="comparisons"
      empty={
        <>
          {t("home.noComparisons")}
          <pre>dumpscope compare TARGET GOLDEN</pre>
        </>
      }
    >
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">{t("home.columns.name")}</th>
            <th scope="col">{t("home.columns.verdict")}</th>
            <th scope="col">{t("home.columns.origin")}</th>
            <th scope="col">{t("home.columns.status")}</th>
            <th scope="col">{t("home.columns.created")}</th>
            <th scope="col">
              <span className="sr">{t("home.columns.actions")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.id} row={row} />
          ))}
        </tbody>
      </table>
    </ListFrame>
  );
}

function Row({ row }: { row: Comparison }) {
  const { t, i18n } = useTranslation();
  const path = `comparisons/${encodeURIComponent(row.id)}`;
  const sides = t("home.sides", { target: row.target_name, golden: row.golden_name });
  // The server's own name for it, in the reader's language.
  const name = row.name === `${row.target_name} against ${row.golden_name}` ? sides : row.name || sides;
  return (
    <tr data-id={row.id}>
      <td>
        <div className={classes.name}>
          <Link to={path} title={name}>
            <bdi>{name}</bdi>
          </Link>
        </div>
        {name !== sides && (
          <div className={classes.sub} title={sides}>
            <bdi>{sides}</bdi>
          </div>
        )}
      </td>
      <td>{row.verdict && <VerdictMark verdict={row.verdict} />}</td>
      <td className={classes.origin}>
        {row.origin ? (
          <span style={{ display: "inline-flex", gap: 6, maxWidth: "100%" }}>
            <ClassMark cls="origin" />
            <MiddleName name={row.origin.node} />
          </span>
        ) : (
          row.status === "done" && <span className="dim">{t("home.noOrigin")}</span>
        )}
      </td>
      <td>
        <Status row={row} />
      </td>
      <td className="dim num" style={{ textAlign: "left" }}>
        {formatMoment(row.created, i18n.language)}
      </td>
      <td className="num">
        <RowActions noun="comparisons" id={row.id} name={name} />
      </td>
    </tr>
  );
}

function Status({ row }: { row: Comparison }) {
  const { t } = useTranslation();
  const busy = row.status === "pending" || row.status === "running";
  const job = useJob(busy ? row.job : null, () => undefined);
  if (busy) {
    const share = Math.round((job?.progress ?? 0) * 100);
    return (
      <span style={{ display: "inline-flex", alignItems: "center", gap: 6 }} title={job?.message ?? undefined}>
        <Progress value={share} w={70} size="sm" aria-label={t(`app.status.${row.status}`)} />
        <span className="num dim">{share}%</span>
      </span>
    );
  }
  if (row.status === "failed") {
    return (
      <span style={{ color: "var(--origin)" }} title={describeProblem(row.error).detail}>
        {t("app.status.failed")}
      </span>
    );
  }
  return <span className="dim">{t(`app.status.${row.status}`)}</span>;
}
