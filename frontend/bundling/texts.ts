/**
 * The catalogues of texts in two parts a language, as `virtual:texts/LANGUAGE/PART`: the `first` has what the answer of a comparison is
 * said with, the `rest` all else. Which texts those are is told from the sources that come with the answer, so nobody keeps a list.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Plugin } from "vite";
import { ANSWER } from "./chunks.ts";
import { reach } from "./imports.ts";

type Tree = { [key: string]: string | Tree };
interface Catalogue {
  said: Record<string, string>;
  ui: Tree;
  [section: string]: unknown;
}

const FOLDER = resolve(import.meta.dirname, "../../backend/dumpscope/texts");
const PREFIX = "virtual:texts/";
/**
 * Sections of the server's sentences that the answer is said with: causes, advice, settings that differ, what was not judged. All others come behind it, with the
 * parts that show them; until then an error or a problem is told in English.
 */
const ANSWERS =
  /^(?:advice|amounts|argument|count|counted|coverage|inputs|item|origin|own|part|setting|shown|side|suspect)\./;

/** What few answers say comes behind them too: what a recorder says of its own dump, bits that do not matter, a loss that was not recorded. */
const RARE = /^(?:setting\.(?:note\.|bits_)|(?:origin|advice)\.unseen_loss)/;

export function texts(): Plugin {
  return {
    name: "texts",
    resolveId: (id) => (id.startsWith(PREFIX) ? `\0${id}` : undefined),
    load(id) {
      const [language, part] = id.startsWith(`\0${PREFIX}`) ? id.slice(PREFIX.length + 1).split("/") : [];
      if (language === undefined) return undefined;
      const file = `${FOLDER}/${language}.json`;
      this.addWatchFile(file);
      const catalogue = JSON.parse(readFileSync(file, "utf8")) as Catalogue;
      return `export default JSON.parse(${JSON.stringify(JSON.stringify(take(catalogue, language, part === "first")))});`;
    },
  };
}

/** One part of a catalogue. The server sends English, so its sentences are needed in other languages only. */
export function take({ said, ui, ...words }: Catalogue, language: string, first: boolean): object {
  const isFirst = firstTexts();
  const page = pick(ui, "", (key) => isFirst(key) === first) ?? {};
  if (language === "en") return { ui: page };
  const sentences = Object.fromEntries(
    Object.entries(said).filter(([key]) => (ANSWERS.test(key) && !RARE.test(key)) === first),
  );
  return { ui: page, said: sentences, ...(first ? {} : words) };
}

/** Says of a text's path whether the sources of the answer name it, whole or as a template with a hole. */
function firstTexts(): (key: string) => boolean {
  const sources = [...reach(ANSWER)].map((path) => readFileSync(path, "utf8")).join("\n");
  const whole = new Set([...sources.matchAll(/["'`]([\w.-]+)["'`]/g)].map((match) => match[1]));
  const holed = [...sources.matchAll(/`([\w.]+\.\$\{[^`]*)`/g)].map(
    (match) =>
      new RegExp(
        `^${(match[1] ?? "")
          .replace(/\$\{.*?\}/g, "\0")
          .replaceAll(".", "\\.")
          .replaceAll("\0", "[\\w-]+")}$`,
      ),
  );
  return (key) => {
    const stem = key.replace(/_(?:one|other)$/, "");
    return whole.has(key) || whole.has(stem) || holed.some((pattern) => pattern.test(stem));
  };
}

function pick(tree: Tree, before: string, wanted: (key: string) => boolean): Tree | null {
  const kept = Object.entries(tree).flatMap(([key, value]): [string, string | Tree][] => {
    if (typeof value === "string") return wanted(before + key) ? [[key, value]] : [];
    const inner = pick(value, `${before}${key}.`, wanted);
    return inner ? [[key, inner]] : [];
  });
  return kept.length > 0 ? Object.fromEntries(kept) : null;
}
