/**
 * The page's texts in the reader's language: the sentence of a key, with its values filled in. A text has a plural form only by its
 * ending (`_one`, `_other`), and values are put in as they are, so a library for this would be larger than all that it does here.
 */
import type { ui as english } from "../../../backend/dumpscope/texts/en.json";
import { catalogueOf, type Language, noteLack, type Tree } from "./catalogues";

export type { Language } from "./catalogues";

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

/** How the page speaks now; another object after each change of the language. */
let spoken: Translation = inLanguage("en");
const watchers = new Set<() => void>();

/** In this language from now on, as far as its texts are here. */
export function speak(language: Language): void {
  spoken = inLanguage(language);
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
  const here = [spoken.language, "en" as const].some((language) => find(catalogueOf(language).ui, key) !== null);
  if (!here) noteLack();
  return here;
}

function inLanguage(language: Language): Translation {
  const plurals = new Intl.PluralRules(language);
  const sentence = (tree: Tree, key: string, count: unknown) =>
    (typeof count === "number"
      ? (find(tree, `${key}_${plurals.select(count)}`) ?? find(tree, `${key}_other`))
      : null) ?? find(tree, key);
  const t: Translate = (key, values = {}) => {
    const given = values as Readonly<Record<string, unknown>>;
    const of = (one: Language) => sentence(catalogueOf(one).ui, key, given.count);
    const own = of(language);
    if (own === null) noteLack();
    const template = own ?? of("en") ?? key;
    return template.replace(/\{(\w+)\}/g, (_whole, name: string) => String(given[name] ?? ""));
  };
  return { language, t };
}

/** The text at the end of a path, with dots between its parts. */
function find(tree: Tree, path: string): string | null {
  let at: string | Tree | undefined = tree;
  for (const part of path.split(".")) at = typeof at === "object" ? at[part] : undefined;
  return typeof at === "string" ? at : null;
}
