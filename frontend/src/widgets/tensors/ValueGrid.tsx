/** A part of a tensor pair: target above golden above difference in every cell, moved through by keyboard. */
import { type KeyboardEvent, useEffect, useId, useRef } from "react";
import type { Values } from "../../api/types";
import { commonShape, formatValue, isNonfinite, moveIndex } from "../../base/numbers/tensorValues";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./ValueGrid.module.css";

interface ValueGridProps {
  values: Values;
  at: readonly number[];
  onMove: (at: number[]) => void;
  label: string;
}

export function ValueGrid({ values, at, onMove, label }: ValueGridProps) {
  const { t } = useTranslation();
  const idBase = useId();
  const current = useRef<HTMLTableCellElement>(null);
  const { rows, row, column, axes } = values;
  const [down, across] = axes.length > 1 ? axes : [null, axes[0] ?? 0];
  const shape = commonShape(values.target_shape, values.golden_shape);
  const height = rows.length;
  const columns = (rows[0] ?? []).map((_, x) => column + x);
  const lines = rows.map((cells, y) => ({ index: row + y, cells }));

  // biome-ignore lint/correctness/useExhaustiveDependencies: the cell that is current is another one then
  useEffect(() => {
    current.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [at, values]);

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
                <span className={classes.sides} aria-hidden="true">
                  {t("evidence.values.targetShort")}
                  <br />
                  {t("evidence.values.goldenShort")}
                  <br />Δ
                </span>
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
                    data-equal={cell.equal || undefined}
                    onMouseDown={() =>
                      onMove(at.map((one, axis) => (axis === down ? index : axis === across ? column + x : one)))
                    }
                  >
                    <Digits text={cell.target} />
                    <Digits text={cell.golden} />
                    <Digits text={cell.difference} />
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
