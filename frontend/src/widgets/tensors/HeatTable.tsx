import { type CSSProperties, type MouseEvent, memo, type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { MiddleName } from "../basic/MiddleName";
import classes from "./HeatTable.module.css";

/** Columns drawn beyond what is in view. */
const BEYOND = 8;

export interface HeatColumn {
  key: number;
  /** Empty where neighbours need the room. */
  text: string;
  title?: string;
  /** It stands out. */
  odd?: boolean;
}

export interface HeatTableRow {
  name: string;
  /** A number beside the name. */
  lead: ReactNode;
  current?: boolean;
  /** Whether rows below belong to it and are shown; undefined where it has none. */
  open?: boolean;
  /** It belongs to the row above. */
  inner?: boolean;
  /** Where the name itself can be chosen. */
  onName?: (event: MouseEvent) => void;
  cell: (place: number) => ReactNode;
}

interface HeatTableProps {
  label: string;
  /** What the rows and the columns are. */
  down: string;
  across: string;
  columns: readonly HeatColumn[];
  /** Pixels of a column. */
  width: number;
  lead: { text: string; title: string };
  /** The column that is in view at first, -1 for none. */
  goal: number;
  rows: readonly HeatTableRow[];
}

/** Names down, something across, a cell for each pair; of many columns only those in view are drawn. */
export function HeatTable({ label, down, across, columns, width, lead, goal, rows }: HeatTableProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ left: 0, width: 1200 });
  const look = () => box.current && setView({ left: box.current.scrollLeft, width: box.current.clientWidth });
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    node.scrollLeft = Math.max(0, goal * width - node.clientWidth / 3);
    setView({ left: node.scrollLeft, width: node.clientWidth });
  }, [goal, width]);
  const first = Math.max(0, Math.floor(view.left / width) - BEYOND);
  const last = Math.min(columns.length, Math.ceil((view.left + view.width) / width) + BEYOND);
  const shown = columns.slice(first, last);
  const space = (count: number) => ({ minWidth: count * width });
  return (
    <section
      className={classes.box}
      style={{ "--column": `${width}px` } as CSSProperties}
      ref={box}
      onScroll={look}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys scroll it
      tabIndex={0}
      aria-label={label}
      data-narrow={width < 16 || undefined}
    >
      <table className={classes.table} aria-colcount={columns.length + 2}>
        <thead>
          <tr>
            <th scope="col" className={classes.name}>
              {down} \ {across}
            </th>
            <th scope="col" title={lead.title}>
              {lead.text}
            </th>
            {first > 0 && <td style={space(first)} />}
            {shown.map(({ key, text, title, odd }, index) => (
              <th
                scope="col"
                key={key}
                title={title}
                aria-colindex={first + index + 3}
                className={classes.column}
                data-odd={odd || undefined}
              >
                {text}
              </th>
            ))}
            {last < columns.length && <td style={space(columns.length - last)} />}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row
              key={row.inner ? `${row.name} inner` : row.name}
              row={row}
              columns={columns}
              first={first}
              last={last}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps {
  row: HeatTableRow;
  columns: readonly HeatColumn[];
  first: number;
  last: number;
}

const Row = memo(function Row({ row, columns, first, last }: RowProps) {
  return (
    <tr data-current={row.current || undefined} data-inner={row.inner || undefined}>
      <th scope="row" className={classes.name}>
        {row.onName ? (
          <button
            type="button"
            className={`plain ${classes.choose}`}
            aria-pressed={row.open === undefined ? (row.current ?? false) : undefined}
            aria-expanded={row.open}
            onClick={row.onName}
          >
            {row.open !== undefined && <span aria-hidden="true">{row.open ? "▾ " : "▸ "}</span>}
            <MiddleName name={row.name} tail={36} />
          </button>
        ) : (
          <MiddleName name={row.name} tail={36} />
        )}
      </th>
      <td className="num">{row.lead}</td>
      {first > 0 && <td />}
      {columns.slice(first, last).map(({ key, odd }, index) => (
        <td key={key} aria-colindex={first + index + 3} data-odd={odd || undefined}>
          {row.cell(first + index)}
        </td>
      ))}
      {last < columns.length && <td />}
    </tr>
  );
});

interface HeatCellProps {
  glyph?: string;
  /** Shaded at all. */
  bad: boolean;
  /** 0..1 */
  heat: number;
  /** null: the title says it, and keys reach the row by its name. */
  label: string | null;
  title: string;
  current: boolean;
  /** Not a number. */
  lost?: boolean;
  onClick: (event: MouseEvent) => void;
}

export function HeatCell({ glyph, bad, heat, label, title, current, lost = false, onClick }: HeatCellProps) {
  return (
    <button
      type="button"
      className={`plain ${classes.cell}`}
      data-bad={bad || undefined}
      data-lost={lost || undefined}
      style={{ "--heat": heat } as CSSProperties}
      aria-label={label ?? undefined}
      tabIndex={label === null ? -1 : undefined}
      aria-current={current || undefined}
      title={title}
      onClick={onClick}
    >
      {glyph}
    </button>
  );
}
