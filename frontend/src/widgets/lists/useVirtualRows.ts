/** Draws the rows in view of a list of any length, one height for all rows. */
import { startTransition, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import {
  clampTop,
  innerHeight,
  isScaled,
  type ListExtent,
  scrollForTop,
  topAtScroll,
  topToKeep,
  visibleRows,
} from "../../base/lists/virtualScroll";
import { atRest } from "../late/rest";

const OVERSCAN = 12;
/** As many of these are drawn at once where the list jumps: who scrolls in the next frame sees no gap. */
const OVERSCAN_AT_ONCE = 4;

export interface VirtualRows {
  /** Of the element that scrolls. */
  ref: (element: HTMLElement | null) => void;
  /** Height of the element within it that holds the rows. */
  height: number;
  /** Rows to draw; last < first if there is none. */
  first: number;
  last: number;
  /** Of these rows the ones in view or nearly so, while the others may stay as they are: the list has just jumped. */
  near: { first: number; last: number } | null;
  /** Pixels from the top of the inner element at which a row is drawn. */
  offset: (index: number) => number;
  /** Number of visible rows. */
  page: number;
  /** Makes a row visible, in the middle if that needs scrolling. */
  reveal: (index: number) => void;
}

export function useVirtualRows(count: number, row: number): VirtualRows {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [view, setView] = useState(0);
  // For a scaled list the exact position is kept as well: one pixel of the element is several of the list.
  const [spot, setSpot] = useState({ top: 0, scroll: 0, jumped: false });
  const top = useRef(0);
  /** Where the element was when rows were last placed. */
  const placed = useRef(0);
  /** The row that was made visible last and where that left the element; -1 once the reader has scrolled. */
  const held = useRef({ index: -1, scroll: 0 });
  const extent: ListExtent = { count, row, view };
  const latest = useRef(extent);
  latest.current = extent;

  const settle = useCallback((scroll: number, jumped: boolean) => {
    placed.current = scroll;
    setSpot({ top: top.current, scroll, jumped });
  }, []);

  const move = useCallback(
    (box: HTMLElement, wanted: number) => {
      const now = { ...latest.current, view: box.clientHeight };
      const before = top.current;
      top.current = clampTop(now, wanted);
      box.scrollTop = Math.round(scrollForTop(now, top.current));
      held.current.scroll = box.scrollTop;
      settle(held.current.scroll, Math.abs(top.current - before) > now.view + OVERSCAN * now.row);
    },
    [settle],
  );

  useLayoutEffect(() => {
    if (!element) return;
    const measure = () => {
      const view = element.clientHeight;
      const { index } = held.current;
      if (index >= 0 && view > 0) {
        // What comes and goes above the list changes its height: the row that was made visible stays so. A box that grows past the end
        // of its list is moved by the browser, and one that was hidden did not move at all: neither is a scroll of the reader's.
        const now = { ...latest.current, view };
        const wanted = topToKeep(now, top.current, index);
        const moved = Math.abs(element.scrollTop - scrollForTop(now, wanted)) > 1;
        if (moved || wanted !== top.current) move(element, wanted);
      }
      setView(view);
    };
    const scroll = () => {
      const now = latest.current;
      const here = element.scrollTop;
      if (here === placed.current) return; // told of what `move` did
      if (element.clientHeight !== now.view) {
        measure();
        if (held.current.index >= 0) return; // the box moved, and nobody scrolled
      }
      if (Math.abs(here - held.current.scroll) > 1) held.current.index = -1;
      const atEnd = here <= 0 || here >= element.scrollHeight - element.clientHeight - 1;
      if (atEnd || !isScaled(now) || Math.abs(here - scrollForTop(now, top.current)) > 1)
        top.current = topAtScroll(now, here);
      settle(here, false);
    };
    const wheel = (event: WheelEvent) => {
      if (!isScaled(latest.current) || event.ctrlKey || event.deltaY === 0) return;
      event.preventDefault();
      held.current.index = -1;
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

  useEffect(() => {
    if (spot.jumped) return atRest(() => startTransition(() => setSpot((now) => ({ ...now, jumped: false }))));
  }, [spot]);

  const reveal = useCallback(
    (index: number) => {
      if (!element) return;
      // As it was measured last: to ask the element would have the page laid out in the middle of a key.
      const view = latest.current.view || element.clientHeight;
      const wanted = topToKeep({ ...latest.current, view }, top.current, index);
      if (wanted !== top.current) move(element, wanted);
      held.current.index = index;
    },
    [element, move],
  );
  // A shorter list moves the element, too.
  useLayoutEffect(() => {
    if (held.current.index >= 0 && held.current.index < count) reveal(held.current.index);
  }, [count, reveal]);

  const shown = clampTop(extent, spot.top);
  return {
    ref: setElement,
    height: innerHeight(extent),
    ...visibleRows(extent, shown, OVERSCAN),
    near: spot.jumped ? visibleRows(extent, shown, OVERSCAN_AT_ONCE) : null,
    offset: (index) => (isScaled(extent) ? Math.round(index * row - shown + spot.scroll) : index * row),
    page: Math.max(1, Math.floor(view / row) - 1),
    reveal,
  };
}
