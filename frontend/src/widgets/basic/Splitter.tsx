import { type KeyboardEvent, type PointerEvent, useState } from "react";
import classes from "./Splitter.module.css";

export interface Split {
  size: number;
  least: number;
  most: number;
  resize: (size: number) => void;
}

/** A panel's width (or height) in pixels, remembered by this browser. */
export function useSplit(name: string, initial: number, least: number, most: number): Split {
  const key = `dumpscope.width.${name}`;
  const [size, setSize] = useState(() => {
    const stored = Number(read(key));
    return stored >= least && stored <= most ? stored : initial;
  });
  const resize = (wanted: number) => {
    const next = Math.round(Math.min(most, Math.max(least, wanted)));
    setSize(next);
    write(key, String(next));
  };
  return { size, least, most, resize };
}

interface SplitterProps {
  split: Split;
  label: string;
  /** The panel is to the right of the bar, or below it. */
  reversed?: boolean;
  /** The bar lies between an upper and a lower panel. */
  lying?: boolean;
}

export function Splitter({ split, label, reversed = false, lying = false }: SplitterProps) {
  const sign = reversed ? -1 : 1;
  const [start, setStart] = useState<{ at: number; size: number } | null>(null);
  const place = (event: PointerEvent) => (lying ? event.clientY : event.clientX);
  const [less, more] = lying ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  const down = (event: PointerEvent<HTMLDivElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    setStart({ at: place(event), size: split.size });
  };
  const moved = (event: PointerEvent) => start && split.resize(start.size + sign * (place(event) - start.at));
  const press = (event: KeyboardEvent) => {
    if (event.key !== less && event.key !== more) return;
    event.preventDefault();
    split.resize(split.size + sign * (event.key === more ? 24 : -24));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be dragged
    <div
      className={classes.splitter}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={lying ? "horizontal" : "vertical"}
      aria-valuenow={split.size}
      aria-valuemin={split.least}
      aria-valuemax={split.most}
      data-dragged={start !== null || undefined}
      onPointerDown={down}
      onPointerMove={moved}
      onPointerUp={() => setStart(null)}
      onPointerCancel={() => setStart(null)}
      onKeyDown={press}
    />
  );
}

function read(key: string): string | null {
  try {
    return window.localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    window.localStorage.setItem(key, value);
  } catch {
    // Storage is off: the width lasts as long as the page.
  }
}
