import { useState } from "react";
import { useRankMap } from "../../../api/trends";
import type { RankMapRow } from "../../../api/types";
import { verdictCell, verdictLabel } from "../../../base/comparison/verdicts";
import { formatReal } from "../../../base/numbers/format";
import { heatOf } from "../../../base/numbers/heat";
import { useTranslation } from "../../../texts/useTranslation";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import { HeatCell } from "../../../widgets/tensors/HeatTable";
import { RankTable } from "../../../widgets/tensors/RankTable";
import { TrendPanel } from "../../../widgets/tensors/TrendPanel";
import { useResult, useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import { Across, useGoToCell, VerdictLegend } from "./Trends";

/** Letters of a row of the map. */
const WORDS: Record<string, string> = { y: "yes", w: "warning", n: "no", "?": "n/a" };

/** Modules of one step over all ranks, the error of each as colour; a click goes to that rank and module. */
export function RankMap() {
  const { t } = useTranslation();
  const { id: comparison } = useShownComparison();
  const { summary } = useResult();
  const { unit, selected } = useSelection();
  const goTo = useGoToCell();
  const [text, setText] = useState("");
  const step = unit?.step ?? 0;
  const found = useRankMap(comparison, { step, q: useDebounced(text.trim(), 250) }, unit !== null);
  const strays = (summary?.strays ?? []).filter((one) => one.step === step);
  const cell = (row: RankMapRow, rank: number, place: number) => {
    const word = WORDS[row.verdicts[place] ?? ""];
    if (word === undefined) return null;
    const score = row.scores[place] ?? null;
    const label = t("trends.cell", { step, rank, verdict: verdictLabel(word), score: formatReal(score, 3) });
    return (
      <HeatCell
        glyph={verdictCell(word).glyph}
        bad={word === "no"}
        heat={heatOf(score)}
        label={`${row.name}: ${label}`}
        title={label}
        current={selected === row.name && unit?.rank === rank}
        onClick={() => goTo(step, rank, row.name)}
      />
    );
  };
  return (
    <TrendPanel text={text} onText={setText} choices={<Across across="ranks" />} found={found}>
      {(first, rows) => (
        <>
          {strays.map((one) => (
            <p key={one.rank} data-testid="stray">
              <strong>{t("ranks.strays", { rank: one.rank })}</strong>: {t("ranks.strayWhy", { ...one })}
            </p>
          ))}
          <RankTable
            label={t("trends.ranksTitle")}
            ranks={first.ranks}
            odd={new Set(strays.map((one) => one.rank))}
            shown={unit?.rank ?? null}
            rows={rows.map((row) => ({ name: row.name, no: row.no, cell: (rank, place) => cell(row, rank, place) }))}
          />
          <VerdictLegend words={t("trends.legendHeat")} plain />
        </>
      )}
    </TrendPanel>
  );
}
