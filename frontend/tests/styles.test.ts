import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const SOURCE = resolve(import.meta.dirname, "../src");
const sheets = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".css"))
  .map((path) => readFileSync(resolve(SOURCE, path), "utf8"));
const COMMENT = /\/\*[\s\S]*?\*\//g;
/** What holds on paper or on a narrow screen alone. */
const ELSEWHERE = /@media (?:print|[^{]*max-width)[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g;

// A plot inserts hundreds of elements, one after the other. Where :has() stands on something around it, the browser styles all that
// lies below that anew for each of them, which was a fifth of what it computed to open the triage screen.
test("styles ask what an element holds of single fields at most", () => {
  expect(sheets.length).toBeGreaterThan(20);
  const asking = sheets.flatMap((sheet) => {
    const text = sheet.replace(COMMENT, "").replace(ELSEWHERE, "");
    return [...text.matchAll(/[^{}]*:has\([^{}]*(?=\{)/g)].map(([selector]) => selector.trim());
  });
  expect(asking).toEqual([".choice:has(input:checked)", ".choice:has(input:focus-visible)"]);
});

// What comes into a size container may stay without a box in Chromium until something else changes (its issue 497855657): the data
// flow of a call was an empty section then. `widgets/basic/sizes` tells sizes instead.
test("no style makes a size container", () => {
  expect(
    sheets.filter((sheet) => /\bcontainer\b|container-type|@container|\dcq[whib]/.test(sheet.replace(COMMENT, ""))),
  ).toEqual([]);
});
