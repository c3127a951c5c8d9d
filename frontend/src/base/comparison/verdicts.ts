export const CLASSES = [
  "origin",
  "nonfinite",
  "amplifier",
  "propagated",
  "contains",
  "structural",
  "unknown",
  "benign",
  "exact",
] as const;
export type ClassWord = (typeof CLASSES)[number];

export const VERDICTS = ["no", "warning", "yes", "n/a"] as const;
export type VerdictWord = (typeof VERDICTS)[number];

/** Classes a person hunting a fault steps through with J and K. */
export const BAD_CLASSES: readonly ClassWord[] = ["origin", "nonfinite", "amplifier", "propagated", "structural"];

/** A verdict differs in shape as well as in colour. */
export const GLYPHS: Record<ClassWord, string> = {
  origin: "✖",
  nonfinite: "∞",
  amplifier: "▲",
  propagated: "~",
  contains: "◦",
  structural: "±",
  unknown: "?",
  benign: "✓",
  exact: "✓",
};

/** A class, or that a call which is harmless itself received something that is not. */
export type FilterWord = ClassWord | "absorbed";

/** What a mark shows: also that a call is wrong again as in an earlier step, which is no new fault. */
export type MarkWord = FilterWord | "repeats";

/** A benign call with a No got its No from its input, so "differs below the floor" would contradict it. */
export function markWord(cls: string | null | undefined, verdict: string | null | undefined): FilterWord {
  const word = toClass(cls);
  return word === "benign" && verdict === "no" ? "absorbed" : word;
}

export function markGlyph(mark: MarkWord): string {
  return mark === "absorbed" ? "↓" : mark === "repeats" ? "↻" : GLYPHS[mark];
}

export function toClass(word: string | null | undefined): ClassWord {
  return (CLASSES as readonly string[]).includes(word ?? "") ? (word as ClassWord) : "unknown";
}

/** What a filter can show: the marks, "absorbed" behind the class that its calls are of. */
export const MARKS: readonly FilterWord[] = CLASSES.flatMap((cls) => (cls === "benign" ? [cls, "absorbed"] : [cls]));

export function isMark(word: string): word is FilterWord {
  return (MARKS as readonly string[]).includes(word);
}

export function isVerdict(word: string): word is VerdictWord {
  return (VERDICTS as readonly string[]).includes(word);
}

export function isBad(word: string | null | undefined): boolean {
  return BAD_CLASSES.includes(toClass(word));
}

/** The field's own words for "Accuracy Reached or Not". */
export function verdictLabel(word: string | null | undefined): string {
  if (word === "yes") return "Yes";
  if (word === "no") return "No";
  if (word === "warning") return "Warning";
  return "N/A";
}

/** A cell of a map by verdict: a No and a Warning differ by shape, and neither looks like an origin. */
export function verdictCell(word: string | null | undefined): { cls: ClassWord; glyph: string } {
  if (word === "no") return { cls: "propagated", glyph: GLYPHS.propagated };
  if (word === "warning") return { cls: "benign", glyph: "!" };
  const cls = verdictClass(word);
  return { cls, glyph: GLYPHS[cls] };
}

export function verdictClass(word: string | null | undefined): ClassWord {
  if (word === "no") return "origin";
  if (word === "warning") return "propagated";
  if (word === "yes") return "exact";
  return "unknown";
}

interface Unit {
  step: number;
  rank: number;
  origins: number;
  verdict: string | null;
}

interface Recurring {
  rank: number;
  ranks: readonly number[];
  steps: readonly number[];
}

/** Whether a fault is seen again in this step and rank. */
export function recurs(origin: Recurring, { step, rank }: { step: number; rank: number }): boolean {
  return origin.steps.includes(step) && (origin.rank === rank || origin.ranks.includes(rank));
}

/** What stands for a step and rank: a fault of its own, one of an earlier step again, or its worst verdict. */
export function unitMark(unit: Unit, origins: readonly Recurring[]): { cls: MarkWord; glyph: string } {
  if (unit.origins > 0) return { cls: "origin", glyph: GLYPHS.origin };
  if (origins.some((one) => recurs(one, unit))) return { cls: "repeats", glyph: markGlyph("repeats") };
  return verdictCell(unit.verdict);
}
