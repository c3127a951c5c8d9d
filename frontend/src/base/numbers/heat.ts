/** Colour of an error in a map: from the floor to ten thousand floors, by its logarithm. */

const DEEPEST = 4;

/** 0 at the floor or below, 1 from ten thousand floors on and for what is outside every tolerance. score: in floors */
export function heatOf(score: number | string | null): number {
  const size = typeof score === "string" ? Number.POSITIVE_INFINITY : (score ?? 0);
  return size <= 1 ? 0 : Math.min(1, Math.log10(size) / DEEPEST);
}

const LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz";

/** A letter of a row of a map: how unusual a number is, 0..1; null where nothing was measured, infinity where it is not finite. */
export function heatOfLetter(letter: string | undefined): number | null {
  if (letter === "!") return Number.POSITIVE_INFINITY;
  const level = letter === undefined ? -1 : LETTERS.indexOf(letter);
  return level < 0 ? null : level / (LETTERS.length - 1);
}
