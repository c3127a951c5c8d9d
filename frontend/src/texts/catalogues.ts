/** The texts of each language as far as they are here: what the answer is said with comes first, the rest behind it. */

export type Language = "en" | "zh";
export type Tree = { readonly [key: string]: string | Tree };
export type Words = Readonly<Record<string, string>>;

/** A part of a catalogue of backend/dumpscope/texts. English has `ui` alone: the server sends the other sections as text. */
export interface Part {
  ui: Tree;
  /** Sentences of the server, by their ids. */
  said?: Words;
  /** Words that the server sends without an id. */
  kinds?: Readonly<Record<"problems" | "errors" | "foreign", Words>>;
  figures?: Words;
  plotly?: Words;
}

type PartName = "first" | "rest";

const LOADS: Readonly<Record<Language, Readonly<Record<PartName, () => Promise<{ default: Part }>>>>> = {
  en: { first: () => import("virtual:texts/en/first"), rest: () => import("virtual:texts/en/rest") },
  zh: { first: () => import("virtual:texts/zh/first"), rest: () => import("virtual:texts/zh/rest") },
};

const here: Record<Language, Part> = { en: { ui: {} }, zh: { ui: {} } };
const coming = new Map<string, Promise<void>>();
let lacked = false;

/** What is here of a language. */
export function catalogueOf(language: Language): Part {
  return here[language];
}

/** Says that a text was looked for in vain, so something on the screen is not in the reader's language. */
export function noteLack(): void {
  lacked = true;
}

/** Whether a text was looked for in vain since this was asked last. */
export function takeLack(): boolean {
  const was = lacked;
  lacked = false;
  return was;
}

/** Has a part come, once for all who ask; true for the one who asked first. */
export async function loadTexts(language: Language, name: PartName): Promise<boolean> {
  const key = `${language} ${name}`;
  const before = coming.get(key);
  const here = before ?? LOADS[language][name]().then((part) => addTexts(language, part.default));
  coming.set(key, here);
  try {
    await here;
  } catch (problem) {
    coming.delete(key); // the next one asks again
    throw problem;
  }
  return before === undefined;
}

export function addTexts(language: Language, part: Part): void {
  const before = here[language];
  here[language] = { ...before, ...part, ui: merge(before.ui, part.ui) };
  if (part.said) here[language].said = { ...before.said, ...part.said };
}

function merge(one: Tree, other: Tree): Tree {
  const both: Record<string, string | Tree> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const mine = both[key];
    both[key] = typeof value === "object" && typeof mine === "object" ? merge(mine, value) : value;
  }
  return both;
}
