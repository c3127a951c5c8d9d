/**
 * Positions of rows in a list of any length. Browsers limit an element to some tens of millions of pixels (Firefox 17.8,
 * Chromium 33.5), so the scrolling element is never taller than TALLEST: for a longer list, the scroll bar's position
 * is scaled to the whole list.
 */

export const TALLEST = 8_000_000;

export interface ListExtent {
  /** Rows of the list. */
  count: number;
  /** Pixels of one row, and of the visible part. */
  row: number;
  view: number;
}

/** Pixels that all rows would take. */
export function fullHeight({ count, row }: ListExtent): number {
  return count * row;
}

/** Pixels of the element that scrolls. */
export function innerHeight(extent: ListExtent): number {
  return Math.min(fullHeight(extent), TALLEST);
}

export function isScaled(extent: ListExtent): boolean {
  return fullHeight(extent) > TALLEST;
}

/** The nearest possible first visible pixel. */
export function clampTop(extent: ListExtent, top: number): number {
  return Math.max(0, Math.min(top, fullHeight(extent) - extent.view));
}

/** First visible pixel of the list when the element is scrolled to `scroll`. */
export function topAtScroll(extent: ListExtent, scroll: number): number {
  if (!isScaled(extent)) return clampTop(extent, scroll);
  return clampTop(extent, (scroll / (TALLEST - extent.view)) * (fullHeight(extent) - extent.view));
}

/** Scroll position of the element when `top` is the first visible pixel. */
export function scrollForTop(extent: ListExtent, top: number): number {
  const clamped = clampTop(extent, top);
  if (!isScaled(extent)) return clamped;
  return (clamped / (fullHeight(extent) - extent.view)) * (TALLEST - extent.view);
}

/** First and last row to draw, `more` of them outside the visible part; last < first if there is none. */
export function visibleRows(extent: ListExtent, top: number, more: number): { first: number; last: number } {
  const first = Math.max(0, Math.floor(top / extent.row) - more);
  return { first, last: Math.min(extent.count, Math.ceil((top + extent.view) / extent.row) + more) - 1 };
}

/** First visible pixel that puts a row in the middle, or null if it is visible already. */
export function topToShow(extent: ListExtent, top: number, index: number): number | null {
  const above = index * extent.row;
  if (above >= top && above + 2 * extent.row <= top + extent.view) return null;
  return clampTop(extent, above - (extent.view - extent.row) / 2);
}

/** First visible pixel that the list has and that shows a row: the nearest to where it is if the row is visible there. */
export function topToKeep(extent: ListExtent, top: number, index: number): number {
  const here = clampTop(extent, top);
  return topToShow(extent, here, index) ?? here;
}
