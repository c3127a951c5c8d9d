/** Numbers over steps: how strongly a cell is shaded, and the points of a line. */
import { type Real, toNumber } from "./format";

export interface Span {
  first: number;
  last: number;
}

export function formatSpan({ first, last }: Span): string {
  return first === last ? `${first}` : `${first}–${last}`;
}

/** Smallest and largest size (above zero) of numbers, null where there is none. */
export function findMagnitudes(values: readonly Real[]): [number, number] | null {
  const known = values
    .map(toNumber)
    .filter((value): value is number => value !== null && Number.isFinite(value) && value !== 0)
    .map(Math.abs);
  return known.length === 0 ? null : [Math.min(...known), Math.max(...known)];
}

/** Place of a number between the sizes of its row, 0..1 by magnitude; 0 where the row hardly changes. */
export function shadeOf(value: Real, range: [number, number] | null): number {
  const number = toNumber(value);
  if (range === null || number === null || !Number.isFinite(number) || number === 0) return 0;
  const [low, high] = range;
  const width = Math.log(high / low);
  return width < 0.05 ? 0 : Math.log(Math.abs(number) / low) / width;
}

export interface Point {
  x: number;
  y: number;
}

export interface Line {
  /** Stretches of neighbouring finite numbers; a gap ends one. */
  stretches: Point[][];
  /** Columns whose number is not finite. */
  breaks: number[];
}

/** A line through the numbers of columns 0..n-1 in a box of size 1 × 1, y upwards from `low` to `high`. */
export function drawLine(values: readonly Real[], low: number, high: number): Line {
  const line: Line = { stretches: [], breaks: [] };
  let open: Point[] | null = null;
  values.forEach((value, column) => {
    const number = toNumber(value);
    if (number !== null && Number.isFinite(number)) {
      const x = values.length === 1 ? 0.5 : column / (values.length - 1);
      const y = high === low ? 0.5 : (number - low) / (high - low);
      if (open === null) {
        open = [];
        line.stretches.push(open);
      }
      open.push({ x, y });
      return;
    }
    open = null;
    if (number !== null) line.breaks.push(column);
  });
  return line;
}

/** Lowest and highest finite number, [0, 0] where there is none. */
export function findRange(values: readonly Real[]): [number, number] {
  const known = values.map(toNumber).filter((value): value is number => value !== null && Number.isFinite(value));
  return known.length === 0 ? [0, 0] : [Math.min(...known), Math.max(...known)];
}
