/**
 * When the keys rest. A key is answered at once by what it selects; what that leads to waits while more keys come, so that none of
 * them waits for the work of one before it.
 */

/** Milliseconds without a key that are a rest: somebody who walks through calls presses more often. */
const REST = 130;
/** A key after so many milliseconds begins a walk: its own call is read at once. */
const PAUSE = 300;

let last = Number.NEGATIVE_INFINITY;
let first = true;

/** A key was pressed; at: milliseconds, as events have them */
export function notePress(at: number): void {
  first = at - last > PAUSE;
  last = at;
}

/** Milliseconds until the keys rest, 0 where they do, or where the last one began a walk. */
export function untilReading(): number {
  return first ? 0 : untilRest();
}

/** Milliseconds until the keys rest, 0 where they do. What cannot be broken off, such as the drawing of a plot, waits for it. */
export function untilRest(): number {
  return Math.max(0, last + REST - performance.now());
}

/** Runs once the keys rest; returns what calls it off. */
export function atRest(run: () => void): () => void {
  let timer = 0;
  const look = () => {
    const wait = untilRest();
    if (wait > 0) timer = window.setTimeout(look, wait);
    else run();
  };
  look();
  return () => clearTimeout(timer);
}
