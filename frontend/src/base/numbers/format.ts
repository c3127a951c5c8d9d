/** A number on the wire: not-finite values travel as words, integers past 2^53 as digits, a missing one as null. */
export type Real = number | string | null | undefined;

export const ABSENT = "—";

/** Four states that must never look alike: a number, NaN, an infinity, nothing. */
export function formatReal(value: Real, digits = 6): string {
  if (value === null || value === undefined) return ABSENT;
  if (typeof value === "string") return formatWord(value);
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+inf" : "-inf";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return Object.is(value, -0) ? "-0" : String(value);
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return trimExponent(value.toExponential(digits - 1));
  return trimZeros(value.toPrecision(digits));
}

/** The number in full, for titles and the clipboard. */
export function exactReal(value: Real): string {
  if (value === null || value === undefined) return ABSENT;
  return typeof value === "number" && Number.isFinite(value) ? String(value) : formatReal(value);
}

function formatWord(word: string): string {
  if (word === "nan") return "NaN";
  if (word === "inf") return "+inf";
  return word;
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function trimExponent(text: string): string {
  const [mantissa = "", exponent = ""] = text.split("e");
  return `${trimZeros(mantissa)}e${exponent.replace("+", "")}`;
}

/** A relative error as a share, always in percent: 0, 1.2e-5%, 0.034%, 12%, NaN, +inf. */
export function formatShare(value: Real): string {
  if (typeof value !== "number") return formatReal(value);
  if (value === 0) return "0";
  const percent = value * 100;
  if (percent >= 1e5 || percent < 1e-3) return `${trimExponent(percent.toExponential(1))}%`;
  return `${trimZeros(percent.toPrecision(2).includes("e") ? percent.toFixed(0) : percent.toPrecision(2))}%`;
}

/** A node's error in the list, each number with its unit: a share in percent, or floors (×) where no share exists, or ∞ for what
 * is outside every tolerance. */
export function formatError(error: Real, score: Real): string {
  if (score === "inf" && !error) return "∞";
  if (error !== null && error !== undefined) return formatShare(error);
  if (typeof score !== "number" || score === 0) return formatReal(score);
  if (score >= 1e5) return `${trimExponent(score.toExponential(1))}×`;
  return `${score >= 10 ? Math.round(score) : formatReal(score, 2)}×`;
}

/** Length of the bar behind that figure, 0..1, by magnitude: shares from 1e-8 to 1, floors from 0.001 to a million. */
export function barLength(error: Real, score: Real): number {
  if (score === "inf" && !error) return 1;
  const share = error !== null && error !== undefined;
  const number = toNumber(share ? error : score);
  if (number === null) return 0;
  if (Number.isNaN(number) || number === Number.POSITIVE_INFINITY) return 1;
  if (number <= 0) return 0;
  const length = share ? Math.log10(number) / 8 + 1 : (Math.log10(number) + 3) / 9;
  return Math.min(1, Math.max(0.02, length));
}

export function toNumber(value: Real): number | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "number") return value;
  if (value === "nan") return Number.NaN;
  if (value === "inf") return Number.POSITIVE_INFINITY;
  if (value === "-inf") return Number.NEGATIVE_INFINITY;
  return Number(value);
}

export function isFiniteReal(value: Real): boolean {
  const number = toNumber(value);
  return number !== null && Number.isFinite(number);
}

const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return ABSENT;
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? size : trimZeros(size.toPrecision(3))} ${UNITS[unit]}`;
}

export function formatCount(count: number | null | undefined): string {
  if (count === null || count === undefined) return ABSENT;
  return String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export type TimeUnits = readonly [hours: string, minutes: string, seconds: string];

/** Seconds as "8 s", "3 min 5 s", "2 h 10 min", in the reader's units. */
export function formatSeconds(seconds: number, [h, min, s]: TimeUnits): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} ${s}`;
  if (whole < 3600) return `${Math.floor(whole / 60)} ${min} ${whole % 60} ${s}`;
  return `${Math.floor(whole / 3600)} ${h} ${Math.floor((whole % 3600) / 60)} ${min}`;
}

/** Runs of whole numbers: [0,1,2,5] -> "0–2, 5". */
export function formatRuns(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const runs: [number, number][] = [];
  for (const number of sorted) {
    const last = runs.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([from, to]) => (from === to ? String(from) : `${from}–${to}`)).join(", ") || ABSENT;
}

/** "0,2-4" -> [0,2,3,4]; empty means all; null where the text is not such a list. */
export function parseNumbers(text: string): number[] | null {
  const numbers = new Set<number>();
  for (const part of text.split(/[,\s]+/).filter(Boolean)) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!match) return null;
    const first = Number(match[1]);
    const last = Number(match[2] ?? match[1]);
    if (last < first || last - first > 10_000) return null;
    for (let number = first; number <= last; number += 1) numbers.add(number);
  }
  return [...numbers].sort((a, b) => a - b);
}
