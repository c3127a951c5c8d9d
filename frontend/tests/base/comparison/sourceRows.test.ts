import { expect, test } from "vitest";
import {
  type CodeRow,
  countDifferences,
  dedent,
  inColumns,
  onlyText,
  type RowKind,
  snippet,
} from "../../../src/base/comparison/sourceRows";

function row(kind: RowKind, target: [number, string] | null, golden: [number, string] | null, at = false): CodeRow {
  const line = (given: [number, string] | null) => given && { number: given[0], text: given[1] };
  return { kind, at, target: line(target), golden: line(golden) };
}

const SAME = [
  row("same", [8, "    a = 1"], [9, "    a = 1"]),
  row("same", [9, ""], [10, ""]),
  row("same", [10, "    if a:"], [11, "    if a:"], true),
  row("same", [11, "        b = a"], [12, "        b = a"]),
];
const DIFFERENT = [
  row("same", [1, "  x = 0"], [1, "  x = 0"]),
  row("golden", null, [2, "  # old"]),
  row("target", [2, "  x += 1"], null),
  row("changed", [3, "  f(x, 1)"], [3, "  f(x)"], true),
  row("same", [4, "  return x"], [4, "  return x"]),
];

test("the indent that all lines share is taken away, and blank lines do not count", () => {
  expect(dedent(SAME).map((one) => onlyText(one).text)).toEqual(["a = 1", "", "if a:", "    b = a"]);
  expect(dedent([row("changed", [1, "\tx"], [1, "    x"])]).map((one) => onlyText(one).text)).toEqual(["\tx"]);
});

test("rows that are equal, or of one side, need one column", () => {
  expect(inColumns(SAME)).toBe(false);
  expect(inColumns([row("plain", [1, "x"], null)])).toBe(false);
  expect(inColumns(DIFFERENT)).toBe(true);
  expect(countDifferences(DIFFERENT)).toBe(3);
});

test("a ticket's lines are numbered and mark the call", () => {
  expect(snippet(SAME, 2)).toEqual({
    language: "python",
    lines: ["   8  a = 1", "   9", "> 10  if a:", "  11      b = a"],
  });
  expect(snippet(SAME, 0).lines).toEqual(["> 10  if a:"]);
});

test("lines of one side are those of that side", () => {
  expect(snippet([row("plain", null, [7, "f(x)"], true)], 2)).toEqual({ language: "python", lines: ["> 7  f(x)"] });
});

test("lines that differ are a diff of the golden against the target", () => {
  expect(snippet(DIFFERENT, 2)).toEqual({
    language: "diff",
    lines: ["-# old", "+x += 1", "-f(x)", "+f(x, 1)", " return x"],
  });
  expect(snippet(DIFFERENT, 9).lines[0]).toBe(" x = 0");
});
