import { describe, expect, test } from "vitest";
import {
  clampTop,
  type Extent,
  fullHeight,
  innerHeight,
  rowsAt,
  scrollAt,
  TALLEST,
  topAt,
  topFor,
} from "../../../src/base/lists/virtualScroll";

const SHORT: Extent = { count: 1000, row: 26, view: 400 };
const LONG: Extent = { count: 1_000_000, row: 26, view: 400 };
const LONGEST: Extent = { count: 2 ** 28, row: 26, view: 400 };

describe("a list that fits", () => {
  test("scrolls pixel by pixel", () => {
    expect(innerHeight(SHORT)).toBe(26_000);
    for (const top of [0, 1, 13_000, 25_600]) {
      expect(topAt(SHORT, top)).toBe(top);
      expect(scrollAt(SHORT, top)).toBe(top);
    }
  });
});

describe.each([LONG, LONGEST])("a list that no element could hold", (extent) => {
  const end = TALLEST - extent.view;

  test("is no taller than an element may be", () => {
    expect(innerHeight(extent)).toBe(TALLEST);
  });

  test("begins and ends where its element does", () => {
    expect(topAt(extent, 0)).toBe(0);
    expect(topAt(extent, end)).toBe(fullHeight(extent) - extent.view);
    expect(rowsAt(extent, topAt(extent, end), 0).last).toBe(extent.count - 1);
    expect(scrollAt(extent, fullHeight(extent))).toBe(end);
  });

  test("is in its middle where its element is", () => {
    const { first } = rowsAt(extent, topAt(extent, end / 2), 0);
    expect(Math.abs(first - extent.count / 2)).toBeLessThan(20);
  });

  test("leads from any row back to it", () => {
    for (const row of [0, 1, 12_345, extent.count - 1]) {
      const top = clampTop(extent, row * extent.row);
      expect(topAt(extent, scrollAt(extent, top))).toBeCloseTo(top, 3);
    }
  });
});

test("rows in view are drawn with some beside them, never more than there are", () => {
  expect(rowsAt(SHORT, 0, 12)).toEqual({ first: 0, last: 27 });
  expect(rowsAt(SHORT, 25_600, 12)).toEqual({ first: 972, last: 999 });
  expect(rowsAt({ ...SHORT, count: 3 }, 0, 12)).toEqual({ first: 0, last: 2 });
  expect(rowsAt({ ...SHORT, count: 0 }, 0, 12)).toEqual({ first: 0, last: -1 });
});

test("a row is brought to the middle, unless it is seen", () => {
  expect(topFor(SHORT, 0, 3)).toBeNull();
  expect(topFor(SHORT, 0, 500)).toBe(13_000 - 187);
  expect(topFor(SHORT, 13_000, 0)).toBe(0);
  expect(topFor(SHORT, 0, 999)).toBe(25_600);
  expect(topFor(SHORT, 25_600, 999)).toBe(25_600);
});
