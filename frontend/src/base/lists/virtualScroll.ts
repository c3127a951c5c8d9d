/**
 * Where rows stand in a list of any length. Browsers cut an element off at some tens of millions of pixels (Firefox at 17.8,
 * Chromium at 33.5), so the element that scrolls is never taller than TALLEST: of a longer list, the place of the scroll bar
 * stands for a share of the whole.
 */

export const TALLEST = 8_000_000;

export interface Extent {
  /** Rows of the list. */
  count: number;
  /** Pixels of one row, and of what is seen at once. */
  row: number;
  view: number;
}

/** Pixels that all rows would take. */
export function fullHeight({ count, row }: Extent): number {
  return count * row;
}

/** Pixels of the element that scrolls. */
export function innerHeight(extent: Extent): number {
  return Math.min(fullHeight(extent), TALLEST);
}

export function isScaled(extent: Extent): boolean {
  return fullHeight(extent) > TALLEST;
}

/** The nearest possible first pixel of what is seen. */
export function clampTop(extent: Extent, top: number): number {
  return Math.max(0, Math.min(top, fullHeight(extent) - extent.view));
}

/** First pixel of the list that is seen where the element is scrolled to `scroll`. */
export function topAt(extent: Extent, scroll: number): number {
  if (!isScaled(extent)) return clampTop(extent, scroll);
  return clampTop(extent, (scroll / (TALLEST - extent.view)) * (fullHeight(extent) - extent.view));
}

/** Where the element is scrolled to when `top` is the first pixel that is seen. */
export function scrollAt(extent: Extent, top: number): number {
  const clamped = clampTop(extent, top);
  if (!isScaled(extent)) return clamped;
  return (clamped / (fullHeight(extent) - extent.view)) * (TALLEST - extent.view);
}

/** First and last row to draw, some more than are seen; last is below first where there is none. */
export function rowsAt(extent: Extent, top: number, more: number): { first: number; last: number } {
  const first = Math.max(0, Math.floor(top / extent.row) - more);
  return { first, last: Math.min(extent.count, Math.ceil((top + extent.view) / extent.row) + more) - 1 };
}

/** First pixel with which a row is in the middle, or null where it is seen well enough already. */
export function topFor(extent: Extent, top: number, index: number): number | null {
  const above = index * extent.row;
  if (above >= top && above + 2 * extent.row <= top + extent.view) return null;
  return clampTop(extent, above - (extent.view - extent.row) / 2);
}
