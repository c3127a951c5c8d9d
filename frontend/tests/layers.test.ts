import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { ui as en } from "../../backend/dumpscope/texts/en.json";
import { ui as zh } from "../../backend/dumpscope/texts/zh.json";

const SOURCE = resolve(import.meta.dirname, "../src");
/** Lower layers first; a file may import its own layer and lower ones. */
const LAYERS = ["base", "texts", "api", "widgets", "views", "main.tsx", "fileMain.tsx"];
/** A folder shows at most so many modules; a component and its style sheet are one. */
const MOST_MODULES = 16;
/** Folders that may show more, each with its reason. */
const LARGER_FOLDERS: Readonly<Record<string, string>> = {};

const all = readdirSync(SOURCE, { recursive: true, encoding: "utf8", withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(SOURCE, join(entry.parentPath, entry.name)));
const files = all.filter((path) => /\.tsx?$/.test(path));
const known = new Set(files);

/** Everything a file names as an import: of values and of types, at once, when it is needed, or as a worker. */
function imports(path: string): string[] {
  const text = readFileSync(join(SOURCE, path), "utf8");
  return [...text.matchAll(/(?:from|import|import\(|new URL\()\s*"([^"]+)"/g)].map((match) => match[1] as string);
}

/** The source files that a file imports, as paths below src. */
function importedFiles(path: string): string[] {
  return imports(path)
    .filter((target) => target.startsWith("./") || target.startsWith("../"))
    .filter((target) => !/\.(css|json)$/.test(target))
    .map((target) => {
      const full = relative(SOURCE, resolve(SOURCE, dirname(path), target));
      const found = ["", ".ts", ".tsx", ".d.ts", "/index.ts"]
        .map((ending) => full + ending)
        .find((one) => known.has(one));
      if (found === undefined) throw new Error(`${path} imports ${target}, which is not there`);
      return found;
    });
}

const graph = new Map(files.map((path) => [path, importedFiles(path)]));

/** The circle that a graph holds, as the files along it; null where it holds none. */
function findCircle(arrows: ReadonlyMap<string, readonly string[]>): string[] | null {
  const done = new Set<string>();
  const way: string[] = [];
  const walk = (path: string): string[] | null => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
    if (done.has(path)) return null;
    way.push(path);
    for (const next of arrows.get(path) ?? []) {
      const circle = walk(next);
      if (circle) return circle;
    }
    way.pop();
    done.add(path);
    return null;
  };
  for (const path of arrows.keys()) {
    const circle = walk(path);
    if (circle) return circle;
  }
  return null;
}

test("a circle of imports is found", () => {
  const arrows = new Map([
    ["a", ["b", "d"]],
    ["b", ["c"]],
    ["c", ["b"]],
    ["d", []],
  ]);
  expect(findCircle(arrows)).toEqual(["b", "c", "b"]);
  expect(findCircle(new Map([...arrows, ["c", ["d"]]]))).toBeNull();
});

test("no files import each other in a circle, types included", () => {
  expect([...graph.values()].flat().length).toBeGreaterThan(400);
  expect(findCircle(graph)).toBeNull();
});

test("no folder shows more modules than one can take in", () => {
  const modules = new Map<string, Set<string>>();
  for (const path of all) {
    const name = basename(path).replace(/\.(d\.ts|tsx?|module\.css|css|json)$/, "");
    modules.set(dirname(path), (modules.get(dirname(path)) ?? new Set()).add(name));
  }
  const large = [...modules].filter(([, names]) => names.size > MOST_MODULES).map(([folder]) => folder);
  expect(large.sort()).toEqual(Object.keys(LARGER_FOLDERS).sort());
});

test("a layer imports only itself and lower layers", () => {
  const layerOf = (path: string) => LAYERS.indexOf(path.split("/")[0] as string);
  const wrong = [...graph].flatMap(([path, targets]) =>
    targets.filter((target) => layerOf(target) > layerOf(path)).map((target) => `${path} -> ${target}`),
  );
  expect(files.length).toBeGreaterThan(40);
  expect(files.filter((path) => layerOf(path) < 0)).toEqual([]);
  expect(wrong).toEqual([]);
});

test("no screen imports another", () => {
  const screen = (path: string) => /^views\/(\w+)\//.exec(path)?.[1];
  const wrong = [...graph].flatMap(([path, targets]) =>
    targets
      .filter((target) => screen(path) && screen(target) !== screen(path) && target.startsWith("views/"))
      .map((target) => `${path} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("the base knows no React", () => {
  const wrong = files
    .filter((path) => path.startsWith("base/"))
    .flatMap((path) => imports(path).filter((target) => !target.startsWith(".")));
  expect(wrong).toEqual([]);
});

test("nothing in the sources names another host", () => {
  for (const path of files) {
    if (path.endsWith("schema.d.ts")) continue;
    expect(readFileSync(join(SOURCE, path), "utf8"), path).not.toMatch(/https?:\/\//);
  }
});

function leaves(texts: object, prefix = ""): Map<string, string> {
  return new Map(
    Object.entries(texts).flatMap(([key, value]) =>
      typeof value === "string" ? [[prefix + key, value] as const] : [...leaves(value as object, `${prefix}${key}.`)],
    ),
  );
}

test("both languages say the same with the same placeholders", () => {
  const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
  const english = leaves(en);
  const chinese = leaves(zh);
  expect([...chinese.keys()]).toEqual([...english.keys()]);
  for (const [key, text] of english) {
    expect(placeholders(chinese.get(key) as string), key).toEqual(placeholders(text));
    expect(chinese.get(key), key).not.toBe("");
  }
});
