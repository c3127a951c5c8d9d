import type { ReactNode } from "react";
import { useTranslation } from "../../texts/useTranslation";
import { HeatTable } from "./HeatTable";

/** Pixels of a column. */
const COLUMN = 28;

interface RankTableRow {
  name: string;
  /** Ranks on which it is No. */
  no: number;
  cell: (rank: number, place: number) => ReactNode;
}

interface RankTableProps {
  label: string;
  ranks: readonly number[];
  /** Ranks that stray: their columns stand out. */
  odd: ReadonlySet<number>;
  /** The rank on the screen. */
  shown: number | null;
  rows: readonly RankTableRow[];
}

/** Calls down, ranks across. It opens with the odd rank in view, else with the one on the screen. */
export function RankTable({ label, ranks, odd, shown, rows }: RankTableProps) {
  const { t } = useTranslation();
  return (
    <HeatTable
      label={label}
      down={t("list.name")}
      across={t("unit.rank")}
      columns={ranks.map((rank) => ({ key: rank, text: String(rank), odd: odd.has(rank) }))}
      width={COLUMN}
      lead={{ text: "No", title: t("ranks.noHint") }}
      goal={ranks.findIndex((rank) => (odd.size > 0 ? odd.has(rank) : rank === shown))}
      rows={rows.map((row) => ({
        name: row.name,
        lead: row.no,
        cell: (place) => row.cell(ranks[place] as number, place),
      }))}
    />
  );
}
