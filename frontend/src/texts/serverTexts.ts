/** Texts of the server in the reader's language. It sends English and ids; other languages are built from the ids. */
import { type Phrase, renderPhrases } from "../base/text/phrases";
import { catalogueOf, noteLack, type Part, type Words } from "./catalogues";
import { currentTranslation, translate } from "./translation";

/** Null where English is read. */
function chinese(): Part | null {
  return currentTranslation().language === "zh" ? catalogueOf("zh") : null;
}

/** A sentence of the server: `english` as it wrote it, `phrases` the same as data. */
export function say(english: string, phrases: readonly Phrase[] | null | undefined): string {
  const texts = chinese();
  if (!texts || !phrases?.length) return english;
  return inChinese(texts, phrases) ?? english;
}

function inChinese(texts: Part, phrases: readonly Phrase[]): string | null {
  const words = renderPhrases(phrases, texts.said ?? {}, "，");
  if (words === null) noteLack();
  return words;
}

/** Whether `say` has the sentence in the reader's language. */
export function isSaid(phrases: readonly Phrase[] | null | undefined): boolean {
  const texts = chinese();
  return !texts || (!!phrases?.length && inChinese(texts, phrases) !== null);
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
  const meaning = wordOf(chinese()?.kinds?.problems, problem.kind);
  if (meaning === null) return problem.message;
  const kept = problem.records ?? null;
  return kept === null ? meaning : `${meaning}${translate("app.keptRecords", { total: kept })}`;
}

/** Meaning of an error code; null: show the server's own sentence. */
export function sayError(code: string): string | null {
  return wordOf(chinese()?.kinds?.errors, code);
}

/** For a file that is not a dump: what it is and what to do; null: show the server's own sentence. */
export function sayForeign(kind: string): string | null {
  return wordOf(chinese()?.kinds?.foreign, kind);
}

function wordOf(words: Words | undefined, key: string): string | null {
  if (!words && chinese()) noteLack();
  return words?.[key] ?? null;
}

/** A plotly figure with its fixed words (axes, legend, pointers) in the reader's language. */
export function sayFigure<T>(figure: T): T {
  const texts = chinese();
  const words = texts?.figures;
  if (texts && !words) noteLack();
  return words ? (inWords(figure, words) as T) : figure;
}

/** What makes plotly name its own buttons in the reader's language. */
export function plotlyLocale(): object {
  const dictionary = chinese()?.plotly;
  return dictionary ? { locale: "zh-CN", locales: { "zh-CN": { dictionary, format: {} } } } : {};
}

const SPOKEN = new Set(["text", "name", "hovertemplate"]);

function inWords(part: unknown, words: Words): unknown {
  if (Array.isArray(part)) return part.map((one) => (typeof one === "object" ? inWords(one, words) : one));
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      typeof value === "string" && SPOKEN.has(key) ? (words[value] ?? value) : inWords(value, words),
    ]),
  );
}
