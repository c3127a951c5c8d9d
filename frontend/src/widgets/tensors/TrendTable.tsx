import type { CSSProperties, ReactNode } from "react";
import type { StepRange } from "../../api/types";
import { formatReal, type Real } from "../../base/numbers/format";
import { formatSpan } from "../../base/numbers/trendLines";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../basic/MiddleName";
import classes from "./TrendTable.module.css";

export interface TrendTableRow {
  name: string;
  /** null: the ranks share the row. */
  rank: number | null;
  firstBad: { step: number; rank: number } | null;
  growth: Real[];
  cells: ReadonlyMap<number, ReactNode>;
}

interface TrendTableProps {
  label: string;
  steps: readonly StepRange[];
  rows: readonly TrendTableRow[];
  badLabel: string;
  growthHint: string;
  /** Leave out the names: all rows are of one call. */
  nameless?: boolean;
}

/** Calls down, steps across; rows of one call that differ by rank share its name. */
export function TrendTable({ label, steps, rows, badLabel, growthHint, nameless = false }: TrendTableProps) {
  const { t } = useTranslation();
  const byRank = rows.some((row) => row.rank !== null);
  const lead = (nameless ? 0 : 1) + (byRank ? 1 : 0) + 2;
  return (
    <div className={classes.box}>
      <table className={classes.table} aria-label={label}>
        <thead>
          <tr>
            <th colSpan={lead} />
            <th colSpan={steps.length} className={classes.steps}>
              {t("unit.step")}
            </th>
          </tr>
          <tr>
            {!nameless && (
              <th scope="col" className={classes.word}>
                {t("list.name")}
              </th>
            )}
            {byRank && <th scope="col">{t("unit.rank")}</th>}
            <th scope="col" className={classes.word}>
              {badLabel}
            </th>
            <th scope="col" title={growthHint}>
              {t("trends.growth")}
            </th>
            {steps.map((span) => (
              <th scope="col" key={span.first} className="num" title={`${t("unit.step")} ${formatSpan(span)}`}>
                {span.first}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            const begins = index === 0 || rows[index - 1]?.name !== row.name;
            return (
              <tr key={`${row.name} ${row.rank}`} className={begins ? classes.group : undefined}>
                {!nameless && begins && (
                  <th scope="rowgroup" rowSpan={height(rows, index)} className={classes.name}>
                    <MiddleName name={row.name} tail={24} />
                  </th>
                )}
                {byRank && <th scope="row">{row.rank}</th>}
                <td className={`num ${classes.fact}`}>
                  {row.firstBad && t(byRank ? "trends.step" : "trends.place", row.firstBad)}
                </td>
                <td className={`num ${classes.fact}`}>{growths(row.growth)}</td>
                {steps.map((span, bucket) => (
                  <td key={span.first}>{row.cells.get(bucket)}</td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Rows from `index` on that are of the same call. */
function height(rows: readonly TrendTableRow[], index: number): number {
  let end = index + 1;
  while (end < rows.length && rows[end]?.name === rows[index]?.name) end += 1;
  return end - index;
}

function growths(values: readonly Real[]): string {
  const known = values.map((value) => (value === null || value === undefined ? "" : `${formatReal(value, 3)}×`));
  return known.some((text) => text !== "") ? known.map((text) => text || "—").join(" / ") : "";
}

interface TrendCellProps {
  cls: string;
  text: string;
  glyph?: boolean;
  label: string;
  title: string;
  shade?: number;
  current?: boolean;
  onClick: () => void;
}

export function TrendTableCell({
  cls,
  text,
  glyph = false,
  label,
  title,
  shade = 0,
  current,
  onClick,
}: TrendCellProps) {
  return (
    <button
      type="button"
      className={`plain ${classes.cell}`}
      data-cls={cls}
      data-glyph={glyph || undefined}
      style={{ "--shade": shade } as CSSProperties}
      aria-label={label}
      aria-current={current || undefined}
      title={title}
      onClick={onClick}
    >
      {text}
    </button>
  );
}
