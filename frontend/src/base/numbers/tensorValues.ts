/** Indices into a tensor, and its values as the server writes them: text of full digits. */

export interface ValueTexts {
  target: string | null;
  golden: string | null;
  difference: string | null;
}

/** `3, 5` or `[3 5]` as an index into a tensor of this shape; null where it has no such element. */
export function parseIndex(text: string, shape: readonly number[]): number[] | null {
  const parts = text
    .trim()
    .replace(/^\[|\]$/g, "")
    .split(/[\s,]+/)
    .filter((part) => part !== "");
  if (!parts.every((part) => /^\d{1,15}$/.test(part))) return null;
  const index = parts.map(Number);
  const sizes = shape.length > 0 ? shape : [1];
  return index.length === sizes.length && index.every((one, axis) => one < (sizes[axis] ?? 0)) ? index : null;
}

/** The index `delta` further along a dimension, kept inside. */
export function moveIndex(
  index: readonly number[],
  axis: number | null | undefined,
  delta: number,
  shape: readonly number[],
): number[] {
  const moved = [...index];
  if (axis === null || axis === undefined) return moved;
  const size = shape[axis] ?? 1;
  moved[axis] = Math.max(0, Math.min(size - 1, (index[axis] ?? 0) + delta));
  return moved;
}

/** The larger of both shapes, dimension by dimension; one element where there are none. */
export function commonShape(target: readonly number[] | null, golden: readonly number[] | null): number[] {
  const shape = target ?? golden ?? [];
  const other = golden ?? shape;
  return shape.length === 0 ? [1] : shape.map((size, axis) => Math.max(size, other[axis] ?? 0));
}

/** A number that is none: NaN or an infinity, also as a part of a complex one. */
export function isNonfinite(text: string | null): boolean {
  return text !== null && /nan|inf/.test(text);
}

/** The digits as people read them: NaN, +inf, -inf. */
export function formatValue(text: string | null): string {
  if (text === null) return "—";
  if (text === "inf") return "+inf";
  return text.replaceAll("nan", "NaN");
}

/** Rows of a window as comma-separated values, one element a line. */
export function writeCsv(
  rows: readonly (readonly ValueTexts[])[],
  at: readonly number[],
  axes: readonly number[],
  row: number,
  column: number,
): string {
  const texts = rows.map((cells) => cells.map((cell) => [cell.target, cell.golden, cell.difference]));
  return writeLines(["target", "golden", "difference"], texts, at, axes, row, column);
}

/** The same for cells of any number of values, under their titles. */
export function writeLines(
  titles: readonly string[],
  rows: readonly (readonly (readonly (string | null)[])[])[],
  at: readonly number[],
  axes: readonly number[],
  row: number,
  column: number,
): string {
  const lines = [["index", ...titles].join(",")];
  const [down, across] = axes.length > 1 ? axes : [undefined, axes[0]];
  rows.forEach((cells, y) => {
    cells.forEach((cell, x) => {
      const index = [...at];
      if (across !== undefined) index[across] = column + x;
      if (down !== undefined) index[down] = row + y;
      lines.push([index.join(" "), ...cell.map((text) => text ?? "")].join(","));
    });
  });
  return `${lines.join("\r\n")}\r\n`;
}

export interface ValueWindow {
  at: readonly number[] | null;
  axes: readonly number[];
  row: number;
  column: number;
  rows: readonly (readonly unknown[])[];
}

/** Row and column of an element in a window; null where the window does not hold it. */
export function findInWindow(window: ValueWindow, index: readonly number[]): readonly [number, number] | null {
  const [down, across] = window.axes.length > 1 ? window.axes : [undefined, window.axes[0]];
  const held = window.at;
  if (held === null || held.length !== index.length) return null;
  if (!index.every((one, axis) => axis === down || axis === across || one === held[axis])) return null;
  const y = down === undefined ? 0 : (index[down] ?? 0) - window.row;
  const x = across === undefined ? 0 : (index[across] ?? 0) - window.column;
  return y >= 0 && y < window.rows.length && x >= 0 && x < (window.rows[0]?.length ?? 0) ? [y, x] : null;
}
