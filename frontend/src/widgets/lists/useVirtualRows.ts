/** Draws the rows in view of a list of any length, one height for all rows. */
import { useCallback, useLayoutEffect, useRef, useState } from "react";
import {
  clampTop,
  type Extent,
  innerHeight,
  isScaled,
  rowsAt,
  scrollAt,
  topAt,
  topFor,
} from "../../base/lists/virtualScroll";

const OVERSCAN = 12;

export interface TallRows {
  /** Of the element that scrolls. */
  ref: (element: HTMLElement | null) => void;
  /** Height of the element within it that holds the rows. */
  height: number;
  /** Rows to draw; last is below first where there is none. */
  first: number;
  last: number;
  /** Pixels from the top of the inner element at which a row is drawn. */
  offset: (index: number) => number;
  /** Rows that are seen at once. */
  page: number;
  /** Scrolls until a row is seen, to the middle where that takes scrolling. */
  reveal: (index: number) => void;
}

export function useTallRows(count: number, row: number): TallRows {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [view, setView] = useState(0);
  // Of a scaled list the exact place is kept beside the element's: one of its pixels stands for several.
  const [spot, setSpot] = useState({ top: 0, scroll: 0 });
  const top = useRef(0);
  const extent: Extent = { count, row, view };
  const latest = useRef(extent);
  latest.current = extent;

  const settle = useCallback((box: HTMLElement) => {
    setSpot({ top: top.current, scroll: box.scrollTop });
  }, []);

  const move = useCallback(
    (box: HTMLElement, wanted: number) => {
      const now = { ...latest.current, view: box.clientHeight };
      top.current = clampTop(now, wanted);
      box.scrollTop = Math.round(scrollAt(now, top.current));
      settle(box);
    },
    [settle],
  );

  useLayoutEffect(() => {
    if (!element) return;
    const measure = () => setView(element.clientHeight);
    const scroll = () => {
      const now = latest.current;
      const here = element.scrollTop;
      const atEnd = here <= 0 || here >= element.scrollHeight - element.clientHeight - 1;
      if (atEnd || !isScaled(now) || Math.abs(here - scrollAt(now, top.current)) > 1) top.current = topAt(now, here);
      settle(element);
    };
    const wheel = (event: WheelEvent) => {
      if (!isScaled(latest.current) || event.ctrlKey || event.deltaY === 0) return;
      event.preventDefault();
      const unit = event.deltaMode === 1 ? row : event.deltaMode === 2 ? element.clientHeight : 1;
      move(element, top.current + event.deltaY * unit);
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    element.addEventListener("scroll", scroll, { passive: true });
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", scroll);
      element.removeEventListener("wheel", wheel);
    };
  }, [element, row, move, settle]);

  const reveal = useCallback(
    (index: number) => {
      if (!element) return;
      const wanted = topFor({ ...latest.current, view: element.clientHeight }, top.current, index);
      if (wanted !== null) move(element, wanted);
    },
    [element, move],
  );

  const shown = clampTop(extent, spot.top);
  return {
    ref: setElement,
    height: innerHeight(extent),
    ...rowsAt(extent, shown, OVERSCAN),
    offset: (index) => (isScaled(extent) ? Math.round(index * row - shown + spot.scroll) : index * row),
    page: Math.max(1, Math.floor(view / row) - 1),
    reveal,
  };
}
