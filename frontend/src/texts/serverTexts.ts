/** Texts of the server in the reader's language. It sends English and ids; other languages are built from the ids. */
import i18next from "i18next";
import { said as chinese, figures, kinds, plotly } from "../../../backend/dumpscope/texts/zh.json";
import { type Phrase, renderPhrases } from "../base/text/phrases";

const WORDS: Readonly<Record<string, string>> = figures;
const PROBLEMS: Readonly<Record<string, string>> = kinds.problems;
const FOREIGN: Readonly<Record<string, string>> = kinds.foreign;
const ERRORS: Readonly<Record<string, string>> = kinds.errors;

export function isChinese(): boolean {
  return i18next.language === "zh";
}

/** A sentence of the server: `english` as it wrote it, `phrases` the same as data. */
export function say(english: string, phrases: readonly Phrase[] | null | undefined): string {
  if (!isChinese() || !phrases?.length) return english;
  return renderPhrases(phrases, chinese, "，") ?? english;
}

/** Whether `say` has the sentence in the reader's language. */
export function isSaid(phrases: readonly Phrase[] | null | undefined): boolean {
  return !isChinese() || (!!phrases?.length && renderPhrases(phrases, chinese, "，") !== null);
}

/** Damage in a dump. Results of older versions hold the English sentence only: for those, what its kind means. */
export function sayProblem(problem: {
  kind: string;
  message: string;
  said?: Phrase | null;
  records?: number | null;
}): string {
  const phrases = problem.said ? [problem.said] : undefined;
  if (isSaid(phrases)) return say(problem.message, phrases);
  const meaning = PROBLEMS[problem.kind];
  if (meaning === undefined) return problem.message;
  const kept = problem.records ?? null;
  return kept === null ? meaning : `${meaning}${i18next.t("app.keptRecords", { total: kept })}`;
}

/** Meaning of an error code; null: show the server's own sentence. */
export function sayError(code: string): string | null {
  return isChinese() ? (ERRORS[code] ?? null) : null;
}

/** For a file that is not a dump: what it is and what to do; null: show the server's own sentence. */
export function sayForeign(kind: string): string | null {
  return isChinese() ? (FOREIGN[kind] ?? null) : null;
}

/** A plotly figure with its fixed words (axes, legend, pointers) in the reader's language. */
export function sayFigure<T>(figure: T): T {
  return isChinese() ? (translate(figure) as T) : figure;
}

/** What makes plotly name its own buttons in the reader's language. */
export function plotlyLocale(): object {
  return isChinese() ? { locale: "zh-CN", locales: { "zh-CN": { dictionary: plotly, format: {} } } } : {};
}

const SPOKEN = new Set(["text", "name", "hovertemplate"]);

function translate(part: unknown): unknown {
  if (Array.isArray(part)) return part.map((one) => (typeof one === "object" ? translate(one) : one));
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      typeof value === "string" && SPOKEN.has(key) ? (WORDS[value] ?? value) : translate(value),
    ]),
  );
}
