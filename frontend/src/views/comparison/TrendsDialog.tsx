import { Button, Modal } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useTrends } from "../../api/queries";
import type { TrendCell, TrendPage, TrendRow } from "../../api/types";
import { formatCount, formatReal } from "../../base/numbers";
import { VERDICTS, verdictCell, verdictLabel } from "../../base/verdicts";
import { MiddleName } from "../../widgets/MiddleName";
import { SearchField } from "../../widgets/SearchField";
import { Empty, Failure, Loading } from "../../widgets/States";
import { useDebounced } from "../../widgets/useDebounced";
import classes from "./TrendsDialog.module.css";
import type { Triage } from "./useTriage";

/** Modules over the steps of the run, the worst of all ranks in each cell; a click goes to that step, rank and module. */
export function TrendsDialog({ comparison, triage }: { comparison: string; triage: Triage }) {
  const { t } = useTranslation();
  const { address, update } = triage;
  return (
    <Modal
      opened={address.dialog === "trends"}
      onClose={() => update({ dialog: null })}
      title={t("trends.title")}
      size="auto"
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      {address.dialog === "trends" && <HeatMap comparison={comparison} triage={triage} />}
    </Modal>
  );
}

function HeatMap({ comparison, triage }: { comparison: string; triage: Triage }) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const found = useTrends(comparison, useDebounced(text.trim(), 250));
  const pages = found.data?.pages ?? [];
  const rows = pages.flatMap((page) => page.items);
  const [first] = pages;
  return (
    <div className={classes.map} data-testid="trends">
      <SearchField
        data-autofocus
        label={t("trends.search")}
        placeholder={t("trends.search")}
        text={text}
        onText={setText}
      />
      {found.error && <Failure problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {first && rows.length === 0 && <Empty>{t("trends.empty")}</Empty>}
      {first && rows.length > 0 && <Table page={first} rows={rows} triage={triage} />}
      {first && rows.length > 0 && <Legend />}
      {found.hasNextPage && (
        <Button
          variant="default"
          size="compact-xs"
          loading={found.isFetchingNextPage}
          onClick={() => void found.fetchNextPage()}
        >
          {t("trends.more", { shown: formatCount(rows.length), total: formatCount(first?.total) })}
        </Button>
      )}
    </div>
  );
}

function Table({ page, rows, triage }: { page: TrendPage; rows: TrendRow[]; triage: Triage }) {
  const { t } = useTranslation();
  const span = ({ first, last }: { first: number; last: number }) => (first === last ? `${first}` : `${first}–${last}`);
  return (
    <div className={classes.box}>
      <table className={classes.table} aria-label={t("trends.title")}>
        <thead>
          <tr>
            <th colSpan={3} />
            <th colSpan={page.steps.length} className={classes.steps}>
              {t("unit.step")}
            </th>
          </tr>
          <tr>
            <th scope="col" className={classes.word}>
              {t("list.name")}
            </th>
            <th scope="col" className={classes.word}>
              {t("trends.firstBad")}
            </th>
            <th scope="col" title={t("trends.growthHint")}>
              {t("trends.growth")}
            </th>
            {page.steps.map((steps) => (
              <th scope="col" key={steps.first} className="num" title={`${t("unit.step")} ${span(steps)}`}>
                {steps.first}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const cells = new Map(row.cells.map((cell) => [cell.bucket, cell]));
            return (
              <tr key={row.name}>
                <th scope="row" className={classes.name}>
                  <MiddleName name={row.name} tail={24} />
                </th>
                <td className="num">
                  {row.first_bad ? t("trends.place", { step: row.first_bad.step, rank: row.first_bad.rank }) : ""}
                </td>
                <td className="num">{row.growth === null ? "" : `${formatReal(row.growth, 3)}×`}</td>
                {page.steps.map((steps, bucket) => (
                  <td key={steps.first}>
                    <Mark cell={cells.get(bucket)} name={row.name} triage={triage} />
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Legend() {
  const { t } = useTranslation();
  return (
    <p className={`${classes.legend} dim`}>
      {t("trends.legend")}{" "}
      {VERDICTS.map((verdict) => {
        const { cls, glyph } = verdictCell(verdict);
        return (
          <span key={verdict} className={classes.entry}>
            <span className={classes.cell} data-cls={cls} aria-hidden="true">
              {glyph}
            </span>
            {verdictLabel(verdict)}
          </span>
        );
      })}
    </p>
  );
}

function Mark({ cell, name, triage }: { cell: TrendCell | undefined; name: string; triage: Triage }) {
  const { t } = useTranslation();
  if (!cell) return null;
  const { cls, glyph } = verdictCell(cell.verdict);
  const { step, rank } = cell;
  const label = t("trends.cell", { step, rank, verdict: verdictLabel(cell.verdict), score: formatReal(cell.score, 3) });
  return (
    <button
      type="button"
      className={`plain ${classes.cell}`}
      data-cls={cls}
      aria-label={`${name}: ${label}`}
      title={label}
      onClick={() => triage.update({ step, rank, node: name, dialog: null })}
    >
      {glyph}
    </button>
  );
}
