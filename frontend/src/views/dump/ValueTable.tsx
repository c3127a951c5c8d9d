import type { StepRange, ValueRow } from "../../api/types";
import { formatReal } from "../../base/numbers/format";
import { findMagnitudes, shadeOf } from "../../base/numbers/trendLines";
import { useTranslation } from "../../texts/useTranslation";
import { useAddress } from "../../widgets/basic/navigation";
import { TrendTable, TrendTableCell } from "../../widgets/tensors/TrendTable";

interface ValueTableProps {
  label: string;
  steps: readonly StepRange[];
  rows: readonly ValueRow[];
  /** What the numbers are: "norm", "max"... */
  word: string;
  nameless?: boolean;
  /** Whether the dump has more than one rank. */
  ranked: boolean;
}

/** One statistic of calls over steps, a row per rank; a click goes to that step, rank and call. */
export function ValueTable({ label, steps, rows, word, nameless = false, ranked }: ValueTableProps) {
  const { t } = useTranslation();
  const [address, update] = useAddress();
  const ranges = new Map<string, ReturnType<typeof findMagnitudes>>();
  for (const { name } of rows) {
    if (ranges.has(name)) continue;
    const same = rows.filter((row) => row.name === name);
    ranges.set(name, findMagnitudes(same.flatMap((row) => row.cells.map((cell) => cell.value))));
  }
  return (
    <TrendTable
      label={label}
      steps={steps}
      badLabel={t("trends.firstNotFinite")}
      growthHint={t("trends.growthValue")}
      nameless={nameless}
      rows={rows.map((row) => ({
        name: row.name,
        rank: ranked ? row.rank : null,
        firstBad: row.first_bad,
        growth: [row.growth],
        cells: new Map(
          row.cells.map((cell) => {
            const value = formatReal(cell.value, 3);
            const where = t("trends.place", { step: cell.step, rank: row.rank });
            const note = cell.bad ? `; ${t("trends.notFinite")}` : "";
            return [
              cell.bucket,
              <TrendTableCell
                key={cell.bucket}
                cls={cell.bad ? "origin" : "plain"}
                shade={shadeOf(cell.value, ranges.get(row.name) ?? null)}
                text={value}
                label={`${row.name}: ${where}: ${word} ${value}${note}`}
                title={`${where}: ${word} ${formatReal(cell.value)}${note}`}
                current={address.node === row.name && address.step === cell.step && address.rank === row.rank}
                onClick={() => update({ step: cell.step, rank: row.rank, node: row.name, dialog: null })}
              />,
            ];
          }),
        ),
      }))}
    />
  );
}
