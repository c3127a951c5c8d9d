/** The moment when a screen shows what it was opened for: nothing that can wait is loaded before. */
import { useEffect } from "react";

let tell: () => void = () => undefined;

/** Ends after the first frame with that on the page. */
export const painted = new Promise<void>((resolve) => {
  tell = resolve;
});

let tellWhole: () => void = () => undefined;

/** Ends when the last part of the screen, its plot, is drawn: what might be opened later comes behind that. */
export const whole = new Promise<void>((resolve) => {
  tellWhole = resolve;
});

/** Milliseconds after which a screen without a plot counts as whole. */
const LATEST = 4000;

export function sayWhole(): void {
  tellWhole();
}

/** Says that the screen shows it, once `now` is true. */
export function usePainted(now: boolean): void {
  useEffect(() => {
    if (now) {
      requestAnimationFrame(() => setTimeout(tell));
      setTimeout(tellWhole, LATEST);
    }
  }, [now]);
}
