/**
 * The page's texts in the reader's language: the sentence of a key, with its values filled in by i18next. React is told of a change
 * by `useTranslation` here: react-i18next copies all of i18next for each component that reads a text.
 */
import { createInstance } from "i18next";
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

const sentences = createInstance();
void sentences.init({
  lng: "en",
  fallbackLng: "en",
  resources: { en: { translation: english } },
  interpolation: { escapeValue: false, prefix: "{", suffix: "}" },
});

/** How the page speaks now; another object after each change of the language. */
let spoken: Translation = inLanguage("en");
const watchers = new Set<() => void>();

/** texts: those of the language; null where they are here already */
export function speak(language: Language, texts: object | null): void {
  if (texts) sentences.addResourceBundle(language, "translation", texts);
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
  return sentences.exists(key);
}

function inLanguage(language: Language): Translation {
  const translated = sentences.getFixedT(language) as (key: string, values?: object) => string;
  return { language, t: (key, values) => translated(key, values) };
}
