/** Sizes of elements, for components and for style sheets.
 *
 * Style sheets have no size containers: what comes into one may stay unseen in Chromium until the pointer moves (its issue 497855657).
 */
import { type RefObject, useLayoutEffect, useState } from "react";

/** Width in CSS pixels of an element, followed as it changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const node = element.current;
    if (!node) return;
    setWidth(Math.floor(node.clientWidth));
    const observer = new ResizeObserver(() => setWidth(Math.floor(node.clientWidth)));
    observer.observe(node);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

/** A `ref` that keeps an element's own content height in CSS pixels in its style, as `--box-height`. */
export const followHeight = following((element, { height }) => {
  element.style.setProperty("--box-height", `${height}px`);
});

/** A `ref` that marks an element with `data-room`: how many of these widths in CSS pixels, narrowest first, its content is wider
 * than. */
export function followWidth(...widths: readonly number[]) {
  return following((element, { width }) => {
    element.dataset.room = String(widths.filter((one) => width > one).length);
  });
}

function following(note: (element: HTMLElement, size: { width: number; height: number }) => void) {
  return (element: HTMLElement | null) => {
    if (!element) return;
    const watch = new ResizeObserver((entries) => {
      for (const { contentRect } of entries) note(element, contentRect);
    });
    watch.observe(element);
    return () => watch.disconnect();
  };
}
