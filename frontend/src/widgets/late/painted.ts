/** The moment when a screen shows what it was opened for: nothing that can wait is loaded before. */
import { useEffect } from "react";

let tell: () => void = () => undefined;

/** Ends after the first frame with that on the page. */
export const painted = new Promise<void>((resolve) => {
  tell = resolve;
});

/** Says that the screen shows it, once `now` is true. */
export function usePainted(now: boolean): void {
  useEffect(() => {
    if (now) requestAnimationFrame(() => setTimeout(tell));
  }, [now]);
}
