import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { en } from "../src/texts/en";
import { zh } from "../src/texts/zh";

const SOURCE = resolve(import.meta.dirname, "../src");
/** Lower layers first; a file may import its own layer and lower ones. */
const LAYERS = ["base", "texts", "api", "widgets", "views", "main.tsx"];

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path));

function imports(path: string): string[] {
  const text = readFileSync(join(SOURCE, path), "utf8");
  return [...text.matchAll(/(?:from|import)\s+"([^"]+)"/g)].map((match) => match[1] as string);
}

test("a layer imports only itself and lower layers", () => {
  const wrong = files.flatMap((path) => {
    const mine = LAYERS.indexOf(path.split("/")[0] as string);
    return imports(path)
      .filter((target) => target.startsWith("."))
      .map((target) => relative(SOURCE, resolve(SOURCE, dirname(path), target)).split("/")[0] as string)
      .filter((layer) => LAYERS.indexOf(layer.replace(/\.tsx?$/, "")) > mine)
      .map((layer) => `${path} -> ${layer}`);
  });
  expect(files.length).toBeGreaterThan(40);
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
  const placeholders = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]).sort();
  const english = leaves(en);
  const chinese = leaves(zh);
  expect([...chinese.keys()]).toEqual([...english.keys()]);
  for (const [key, text] of english) {
    expect(placeholders(chinese.get(key) as string), key).toEqual(placeholders(text));
    expect(chinese.get(key), key).not.toBe("");
  }
});
