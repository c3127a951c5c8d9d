import { type RefObject, useLayoutEffect, useRef } from "react";
import type { TreeLine } from "../../base/lists/treeLines";

/** Pixels of a line of the tree. */
export const ROW = 24;

/** Keeps the cursor's line in place when lines come or go, or else the first visible line. */
export function useKeepScroll(
  box: RefObject<HTMLDivElement | null>,
  lines: readonly TreeLine[],
  cursorKey: string | null,
): void {
  const before = useRef<readonly TreeLine[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only other lines can move anything
  useLayoutEffect(() => {
    const old = before.current;
    before.current = lines;
    const element = box.current;
    if (!element || old === lines) return;
    const { first, end } = visibleLines(element);
    const seen = old.slice(first, end);
    const at = (key: string) => seen.findIndex((line) => line.key === key);
    const anchors = cursorKey !== null && at(cursorKey) >= 0 ? [cursorKey] : seen.map((line) => line.key);
    for (const key of anchors) {
      const now = lines.findIndex((line) => line.key === key);
      if (now < 0) continue;
      element.scrollTop += (now - first - at(key)) * ROW;
      return;
    }
  }, [box, lines]);
}

/** First line in view and the one behind the last. */
export function visibleLines(box: HTMLElement | null): { first: number; end: number } {
  return linesIn(box?.scrollTop ?? 0, box?.clientHeight ?? 0);
}

export function linesIn(top: number, height: number): { first: number; end: number } {
  return { first: Math.floor(top / ROW), end: Math.ceil((top + height) / ROW) };
}
