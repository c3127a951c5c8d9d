/** The page's texts in the reader's language: the sentence of a key, with its values filled in. */
import { ui as english } from "../../../backend/dumpscope/texts/en.json";

export type Language = "en" | "zh";

type Leaves<Tree, Before extends string = ""> = {
  [Key in keyof Tree & string]: Tree[Key] extends string ? `${Before}${Key}` : Leaves<Tree[Key], `${Before}${Key}.`>;
}[keyof Tree & string];
type Counted<Key extends string> = Key extends `${infer Stem}_one` | `${infer Stem}_other` ? Stem : Key;

/** Path of a text. With the value `count` the text of its plural form is taken. */
export type TextKey = Counted<Leaves<typeof english>>;

export type Translate = (key: TextKey, values?: object) => string;

export interface Translation {
  language: Language;
  t: Translate;
}

type Tree = { readonly [key: string]: string | Tree };

const ENGLISH = flatten(english);

/** How the page speaks now; another object after each change of the language. */
let spoken: Translation = inLanguage("en", ENGLISH);
const watchers = new Set<() => void>();

export function speak(language: Language, texts: Tree | null): void {
  spoken = inLanguage(language, texts ? flatten(texts) : ENGLISH);
  document.documentElement.lang = language;
  for (const tell of watchers) tell();
}

export function currentTranslation(): Translation {
  return spoken;
}

export function watchTranslation(tell: () => void): () => void {
  watchers.add(tell);
  return () => watchers.delete(tell);
}

/** For code outside of components: what a component shows by `useTranslation` follows a change of the language. */
export const translate: Translate = (key, values) => spoken.t(key, values);

/** Whether there is a text for a word that the server sent. */
export function isText(key: string): key is TextKey {
  return ENGLISH.has(key);
}

function inLanguage(language: Language, texts: ReadonlyMap<string, string>): Translation {
  const rules = new Intl.PluralRules(language);
  const find = (key: string) => texts.get(key) ?? ENGLISH.get(key);
  const template = (key: string, values: { count?: unknown }) =>
    (typeof values.count === "number" ? find(`${key}_${rules.select(values.count)}`) : undefined) ?? find(key) ?? key;
  return { language, t: (key, values = {}) => fill(template(key, values), values as Record<string, unknown>) };
}

function fill(template: string, values: Readonly<Record<string, unknown>>): string {
  if (!template.includes("{")) return template;
  return template.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));
}

function flatten(tree: Tree, before = "", into = new Map<string, string>()): Map<string, string> {
  for (const [key, value] of Object.entries(tree)) {
    if (typeof value === "string") into.set(before + key, value);
    else flatten(value, `${before}${key}.`, into);
  }
  return into;
}
