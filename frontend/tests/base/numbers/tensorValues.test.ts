import { describe, expect, test } from "vitest";
import {
  commonShape,
  findInWindow,
  formatValue,
  isNonfinite,
  moveIndex,
  parseIndex,
  writeCsv,
  writeLines,
} from "../../../src/base/numbers/tensorValues";

describe("an index", () => {
  test.each(["3, 5", "3 5", "[3,5]", " 3,5 "])("is read from %s", (text) => {
    expect(parseIndex(text, [4, 6])).toEqual([3, 5]);
  });

  test.each(["4, 0", "3", "3, 5, 0", "-1, 0", "a, b", "", "1e0, 0"])("is not read from %s", (text) => {
    expect(parseIndex(text, [4, 6])).toBeNull();
  });

  test("of a single number is 0", () => {
    expect(parseIndex("0", [])).toEqual([0]);
  });

  test("moves along one dimension and stays inside", () => {
    expect(moveIndex([1, 2], 1, 1, [4, 6])).toEqual([1, 3]);
    expect(moveIndex([1, 2], 0, -9, [4, 6])).toEqual([0, 2]);
    expect(moveIndex([1, 2], 1, Number.POSITIVE_INFINITY, [4, 6])).toEqual([1, 5]);
    expect(moveIndex([1, 2], null, 1, [4, 6])).toEqual([1, 2]);
  });
});

describe("a window", () => {
  const window = { at: [7, 2, 3], axes: [1, 2], row: 1, column: 2, rows: [Array(4), Array(4)] };

  test("holds the elements of its plane and no others", () => {
    expect(findInWindow(window, [7, 2, 3])).toEqual([1, 1]);
    expect(findInWindow(window, [7, 1, 5])).toEqual([0, 3]);
    expect(findInWindow(window, [7, 3, 3])).toBeNull();
    expect(findInWindow(window, [6, 2, 3])).toBeNull();
    expect(findInWindow(window, [2, 3])).toBeNull();
    expect(findInWindow({ ...window, at: [4], axes: [0], row: 0, column: 3, rows: [Array(3)] }, [5])).toEqual([0, 2]);
  });

  test("is written with the index of every element", () => {
    const cell = (target: string) => ({ target, golden: "9007199254740993", difference: null });
    const text = writeCsv([[cell("nan"), cell("1")]], [7, 2, 3], [1, 2], 2, 3);
    expect(text.split("\r\n").slice(0, 3)).toEqual([
      "index,target,golden,difference",
      "7 2 3,nan,9007199254740993,",
      "7 2 4,1,9007199254740993,",
    ]);
  });
});

test("what is no number is told apart from what is", () => {
  expect([
    isNonfinite("nan"),
    isNonfinite("-inf"),
    isNonfinite("1.0+nanj"),
    isNonfinite("1e-300"),
    isNonfinite(null),
  ]).toEqual([true, true, true, false, false]);
  expect([
    formatValue("nan"),
    formatValue("inf"),
    formatValue("-inf"),
    formatValue(null),
    formatValue("nan+1.0j"),
  ]).toEqual(["NaN", "+inf", "-inf", "—", "NaN+1.0j"]);
});

test("two shapes are walked through by the larger of both", () => {
  expect(commonShape([3, 2], [2, 5])).toEqual([3, 5]);
  expect(commonShape(null, [2])).toEqual([2]);
  expect(commonShape([], [])).toEqual([1]);
});

test("cells of one value are written under one title", () => {
  expect(writeLines(["value"], [[["1"], [null]]], [4], [0], 0, 3)).toBe("index,value\r\n3,1\r\n4,\r\n");
});
