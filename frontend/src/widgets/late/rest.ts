/**
 * When the keys rest. A key is answered at once by what it selects; what that leads to waits while more keys come, so that none of
 * them waits for the work of one before it.
 */

/** Milliseconds without a key that are a rest: somebody who walks through calls presses more often. */
const REST = 130;
/** Who walks more slowly rests when no key came for so many times as long as between the last two. */
const SLOWER = 1.5;
/** A key after so many milliseconds begins a walk: its own call is read at once. */
const PAUSE = 300;

let last = Number.NEGATIVE_INFINITY;
let between = Number.POSITIVE_INFINITY;

/** A key of a walk was pressed; at: milliseconds, as events have them */
export function notePress(at: number): void {
  between = at - last;
  last = at;
}

/** Milliseconds until the keys rest, 0 where they do, or where the last one began a walk. */
export function untilReading(): number {
  return between > PAUSE ? 0 : remaining(REST);
}

/** Milliseconds until the keys rest, 0 where they do. What cannot be broken off, such as the drawing of a plot, waits for it. */
export function untilRest(): number {
  return remaining(between > PAUSE ? REST : Math.max(REST, SLOWER * between));
}

function remaining(rest: number): number {
  return Math.max(0, last + rest - performance.now());
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
