import { type CSSProperties, type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { heatOf } from "../../base/numbers/heat";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../basic/MiddleName";
import classes from "./RankTable.module.css";

/** Pixels of a column, and columns drawn beyond what is in view. */
const COLUMN = 28;
const BEYOND = 8;

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

/** Calls down, ranks across; of many ranks only the columns in view are drawn. */
export function RankTable({ label, ranks, odd, shown, rows }: RankTableProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ left: 0, width: 1200 });
  const look = () => box.current && setView({ left: box.current.scrollLeft, width: box.current.clientWidth });
  // It opens with the odd rank in view, else with the one on the screen.
  const goal = ranks.findIndex((rank) => (odd.size > 0 ? odd.has(rank) : rank === shown));
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    node.scrollLeft = Math.max(0, goal * COLUMN - node.clientWidth / 3);
    setView({ left: node.scrollLeft, width: node.clientWidth });
  }, [goal]);
  const first = Math.max(0, Math.floor(view.left / COLUMN) - BEYOND);
  const last = Math.min(ranks.length, Math.ceil((view.left + view.width) / COLUMN) + BEYOND);
  const columns = ranks.slice(first, last).map((rank, index) => ({ rank, place: first + index }));
  const space = (count: number) => ({ minWidth: count * COLUMN });
  const mark = (rank: number) => ({ "data-odd": odd.has(rank) || undefined });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys scroll it
    <section className={classes.box} ref={box} onScroll={look} tabIndex={0} aria-label={label}>
      <table className={classes.table} aria-colcount={ranks.length + 2}>
        <thead>
          <tr>
            <th scope="col" className={classes.name}>
              {t("list.name")} \ {t("unit.rank")}
            </th>
            <th scope="col" title={t("ranks.noHint")}>
              No
            </th>
            {first > 0 && <td style={space(first)} />}
            {columns.map(({ rank, place }) => (
              <th scope="col" key={rank} aria-colindex={place + 3} className={classes.rank} {...mark(rank)}>
                {rank}
              </th>
            ))}
            {last < ranks.length && <td style={space(ranks.length - last)} />}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row" className={classes.name}>
                <MiddleName name={row.name} tail={36} />
              </th>
              <td className="num">{row.no}</td>
              {first > 0 && <td />}
              {columns.map(({ rank, place }) => (
                <td key={rank} aria-colindex={place + 3} {...mark(rank)}>
                  {row.cell(rank, place)}
                </td>
              ))}
              {last < ranks.length && <td />}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface HeatCellProps {
  glyph: string;
  bad: boolean;
  /** The largest error, in floors. */
  score: number | string | null;
  label: string;
  title: string;
  current: boolean;
  onClick: () => void;
}

export function HeatCell({ glyph, bad, score, label, title, current, onClick }: HeatCellProps) {
  return (
    <button
      type="button"
      className={`plain ${classes.cell}`}
      data-bad={bad || undefined}
      style={{ "--heat": heatOf(score) } as CSSProperties}
      aria-label={label}
      aria-current={current || undefined}
      title={title}
      onClick={onClick}
    >
      {glyph}
    </button>
  );
}
