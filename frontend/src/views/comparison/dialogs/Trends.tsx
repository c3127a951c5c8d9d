import { Checkbox, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { holdsUnit } from "../../../api/file/contents";
import { STATISTICS, type Statistic, useTrends } from "../../../api/trends";
import type { TrendCell, TrendRow } from "../../../api/types";
import { VERDICTS, verdictCell, verdictLabel } from "../../../base/comparison/verdicts";
import { IN_FILE } from "../../../base/inFile";
import { formatReal } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import { ChoiceField, useStatisticWords } from "../../../widgets/tensors/TrendControls";
import { TrendPanel } from "../../../widgets/tensors/TrendPanel";
import { TrendTable, TrendTableCell } from "../../../widgets/tensors/TrendTable";
import { useSay } from "../selection/notice";
import { useResult, useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Trends.module.css";

/** Modules over the steps of the run, a row per rank or the worst of all; a click goes to that step, rank and module. */
export function Trends() {
  const { t } = useTranslation();
  const { id: comparison } = useShownComparison();
  const { ranks } = useResult();
  const words = useStatisticWords();
  const [text, setText] = useState("");
  const [shown, setShown] = useState<Statistic | "error">("error");
  const several = ranks.length > 1;
  const [chosen, setByRank] = useState<boolean | null>(null);
  const byRank = chosen ?? several;
  const statistic = shown === "error" ? null : shown;
  const found = useTrends(comparison, { q: useDebounced(text.trim(), 250), statistic, byRank });
  const mark = (row: TrendRow, cell: TrendCell) => (
    <Cell key={cell.bucket} row={row} cell={cell} statistic={statistic} />
  );
  const choices = (
    <>
      <Across across="steps" />
      {!IN_FILE && (
        <ChoiceField
          label={t("trends.show")}
          testId="trend-statistic"
          value={shown}
          values={[
            { value: "error", label: t("trends.verdict") },
            ...STATISTICS.map((word) => ({ value: word, label: words[word] })),
          ]}
          onChange={setShown}
        />
      )}
      {several && (
        <Checkbox
          size="xs"
          label={t("trends.byRank")}
          checked={byRank}
          onChange={(event) => setByRank(event.currentTarget.checked)}
        />
      )}
    </>
  );
  return (
    <TrendPanel text={text} onText={setText} choices={choices} found={found}>
      {(first, rows) => (
        <>
          <TrendTable
            label={t("trends.title")}
            steps={first.steps}
            badLabel={t("trends.firstBad")}
            growthHint={t(statistic === null ? "trends.growthHint" : "trends.growthSides")}
            rows={rows.map((row) => ({
              name: row.name,
              rank: row.rank,
              firstBad: row.first_bad,
              growth: statistic === null ? [row.growth] : [row.target_growth, row.golden_growth],
              cells: new Map(row.cells.map((cell) => [cell.bucket, mark(row, cell)])),
            }))}
          />
          <VerdictLegend words={t(rows[0]?.rank === null ? "trends.legend" : "trends.legendRank")} />
        </>
      )}
    </TrendPanel>
  );
}

/** Selects the call of a cell, and closes the map. A file says so where it does not hold that step and rank. */
export function useGoToCell(): (step: number, rank: number, node: string) => void {
  const { t } = useTranslation();
  const say = useSay();
  const { update } = useSelection();
  return (step, rank, node) => {
    if (holdsUnit(step, rank)) update({ step, rank, node, dialog: null });
    else say(t("file.unitAbsent"));
  };
}

/** Steps or ranks as columns, where there is more than one rank. */
export function Across({ across }: { across: "steps" | "ranks" }) {
  const { t } = useTranslation();
  const { ranks } = useResult();
  const { update } = useSelection();
  if (ranks.length < 2) return null;
  return (
    <SegmentedControl
      size="xs"
      aria-label={t("trends.across")}
      data={[
        { value: "steps", label: t("trends.acrossSteps") },
        { value: "ranks", label: t("trends.acrossRanks") },
      ]}
      value={across}
      onChange={(word) => update({ dialog: word === "ranks" ? "ranks" : "trends" })}
    />
  );
}

/** plain: the glyphs alone, where the colour says something else */
export function VerdictLegend({ words, plain = false }: { words: string; plain?: boolean }) {
  return (
    <p className={`${classes.legend} dim`}>
      {words}{" "}
      {VERDICTS.map((verdict) => {
        const { cls, glyph } = verdictCell(verdict);
        return (
          <span key={verdict} className={classes.entry}>
            <span className={plain ? undefined : classes.key} data-cls={cls} aria-hidden="true">
              {glyph}
            </span>
            {verdictLabel(verdict)}
          </span>
        );
      })}
    </p>
  );
}

interface CellProps {
  row: TrendRow;
  cell: TrendCell;
  statistic: Statistic | null;
}

function Cell({ row, cell, statistic }: CellProps) {
  const { t } = useTranslation();
  const words = useStatisticWords();
  const { cls, glyph } = verdictCell(cell.verdict);
  const { step, rank } = cell;
  const verdict = verdictLabel(cell.verdict);
  const error = t("trends.cell", { step, rank, verdict, score: formatReal(cell.score, 3) });
  const sides = { target: formatReal(cell.target, 3), golden: formatReal(cell.golden, 3) };
  const title =
    statistic === null ? error : `${error}; ${t("trends.sides", { statistic: words[statistic], ...sides })}`;
  const { unit, selected } = useSelection();
  const goTo = useGoToCell();
  return (
    <TrendTableCell
      cls={cls}
      glyph={statistic === null}
      text={statistic === null ? glyph : formatReal(cell.target ?? cell.golden, 3)}
      label={`${row.name}: ${title}`}
      title={title}
      current={selected === row.name && unit?.step === step && unit.rank === rank}
      onClick={() => goTo(step, rank, row.name)}
    />
  );
}
