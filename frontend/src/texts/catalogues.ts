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
const loaded = new Set<string>();

/** What is here of a language. */
export function catalogueOf(language: Language): Part {
  return here[language];
}

/** Whether it was not here before. */
export async function loadTexts(language: Language, name: PartName): Promise<boolean> {
  if (loaded.has(`${language} ${name}`)) return false;
  addTexts(language, (await LOADS[language][name]()).default);
  loaded.add(`${language} ${name}`);
  return true;
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
