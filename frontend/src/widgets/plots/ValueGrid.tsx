/** A part of a tensor, or of a pair of them: numbers one above the other in every cell, moved through by keyboard. */
import { type KeyboardEvent, useEffect, useId, useRef } from "react";
import { formatValue, isNonfinite, moveIndex } from "../../base/numbers/tensorValues";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./ValueGrid.module.css";

export interface GridCell {
  /** Numbers in full, or none; as many as there are sides. */
  lines: readonly (string | null)[];
  /** Nothing here needs to stand out. */
  plain: boolean;
}

interface ValueGridProps {
  axes: readonly number[];
  row: number;
  column: number;
  rows: readonly (readonly GridCell[])[];
  shape: readonly number[];
  /** What each line of a cell is; none where a cell has one line. */
  sides: readonly string[];
  at: readonly number[];
  onMove: (at: number[]) => void;
  label: string;
}

export function ValueGrid({ axes, row, column, rows, shape, sides, at, onMove, label }: ValueGridProps) {
  const { t } = useTranslation();
  const idBase = useId();
  const current = useRef<HTMLTableCellElement>(null);
  const [down, across] = axes.length > 1 ? axes : [null, axes[0] ?? 0];
  const height = rows.length;
  const columns = (rows[0] ?? []).map((_, x) => column + x);
  const lines = rows.map((cells, y) => ({ index: row + y, cells }));

  // biome-ignore lint/correctness/useExhaustiveDependencies: the cell that is current is another one then
  useEffect(() => {
    current.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [at, rows]);

  const press = (event: KeyboardEvent) => {
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "Home" && event.key !== "End")) return;
    const steps: Record<string, readonly [number | null | undefined, number]> = {
      ArrowLeft: [across, -1],
      ArrowRight: [across, 1],
      ArrowUp: [down, -1],
      ArrowDown: [down, 1],
      PageUp: [down, -height],
      PageDown: [down, height],
      Home: [event.ctrlKey ? down : across, Number.NEGATIVE_INFINITY],
      End: [event.ctrlKey ? down : across, Number.POSITIVE_INFINITY],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    onMove(moveIndex(at, step[0], step[1], shape));
  };

  return (
    <div className={classes.grid} data-testid="values-grid">
      <table
        className={classes.table}
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table whose cells are walked through
        role="grid"
        aria-label={label}
        aria-rowcount={down === null ? 1 : (shape[down] ?? 1)}
        aria-colcount={shape[across ?? 0] ?? 1}
        aria-activedescendant={`${idBase}-current`}
        tabIndex={0}
        onKeyDown={press}
      >
        <thead>
          <tr>
            <th scope="col">
              <span className="sr">{t("evidence.values.side")}</span>
            </th>
            {columns.map((index) => (
              <th key={index} scope="col">
                {index}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ index, cells }) => (
            <tr key={index}>
              <th scope="row">
                {down === null ? "" : index}
                {sides.length > 0 && (
                  <div className={classes.sides} aria-hidden="true">
                    {sides.map((side) => (
                      <div key={side}>{side}</div>
                    ))}
                  </div>
                )}
              </th>
              {cells.map((cell, x) => {
                const here = (down === null || at[down] === index) && at[across ?? 0] === column + x;
                return (
                  <td
                    // biome-ignore lint/suspicious/noArrayIndexKey: a cell is known by its place
                    key={x}
                    ref={here ? current : undefined}
                    id={here ? `${idBase}-current` : undefined}
                    // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: see the grid
                    role="gridcell"
                    tabIndex={-1}
                    className={classes.cell}
                    aria-selected={here}
                    data-plain={cell.plain || undefined}
                    onMouseDown={() =>
                      onMove(at.map((one, axis) => (axis === down ? index : axis === across ? column + x : one)))
                    }
                  >
                    {cell.lines.map((text, line) => (
                      // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its place
                      <Digits key={line} text={text} />
                    ))}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Digits({ text }: { text: string | null }) {
  return <div className={isNonfinite(text) ? classes.lost : undefined}>{formatValue(text)}</div>;
}
