/**
 * When the keys rest. A key is answered at once by what it selects; what that leads to waits while more keys come, so that none of
 * them waits for the work of one before it.
 */

/** Milliseconds without a key that are a rest: somebody who walks through calls presses more often. */
const REST = 130;
/** Who walks more slowly rests when no key came for so many times as long as between the last two. */
const SLOWER = 1.5;
/** What is read shows so many milliseconds later. Where the next key comes before, it would be held up by what it is about to replace. */
const SHOWING = 60;
/** A walk that is so fast ends when no key came for so many times as long as between the last two. */
const STEADY = 1.25;
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
  if (between > PAUSE) return 0;
  return remaining(between < REST + SHOWING ? Math.max(REST, STEADY * between) : REST);
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
