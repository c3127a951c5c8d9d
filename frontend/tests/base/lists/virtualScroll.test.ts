import { describe, expect, test } from "vitest";
import {
  clampTop,
  fullHeight,
  innerHeight,
  type ListExtent,
  scrollForTop,
  TALLEST,
  topAtScroll,
  topToKeep,
  topToShow,
  visibleRows,
} from "../../../src/base/lists/virtualScroll";

const SHORT: ListExtent = { count: 1000, row: 26, view: 400 };
const LONG: ListExtent = { count: 1_000_000, row: 26, view: 400 };
const LONGEST: ListExtent = { count: 2 ** 28, row: 26, view: 400 };

describe("a list that fits", () => {
  test("scrolls pixel by pixel", () => {
    expect(innerHeight(SHORT)).toBe(26_000);
    for (const top of [0, 1, 13_000, 25_600]) {
      expect(topAtScroll(SHORT, top)).toBe(top);
      expect(scrollForTop(SHORT, top)).toBe(top);
    }
  });
});

describe.each([LONG, LONGEST])("a list that no element could hold", (extent) => {
  const end = TALLEST - extent.view;

  test("is no taller than an element may be", () => {
    expect(innerHeight(extent)).toBe(TALLEST);
  });

  test("begins and ends where its element does", () => {
    expect(topAtScroll(extent, 0)).toBe(0);
    expect(topAtScroll(extent, end)).toBe(fullHeight(extent) - extent.view);
    expect(visibleRows(extent, topAtScroll(extent, end), 0).last).toBe(extent.count - 1);
    expect(scrollForTop(extent, fullHeight(extent))).toBe(end);
  });

  test("is in its middle where its element is", () => {
    const { first } = visibleRows(extent, topAtScroll(extent, end / 2), 0);
    expect(Math.abs(first - extent.count / 2)).toBeLessThan(20);
  });

  test("leads from any row back to it", () => {
    for (const row of [0, 1, 12_345, extent.count - 1]) {
      const top = clampTop(extent, row * extent.row);
      expect(topAtScroll(extent, scrollForTop(extent, top))).toBeCloseTo(top, 3);
    }
  });
});

test("rows in view are drawn with some beside them, never more than there are", () => {
  expect(visibleRows(SHORT, 0, 12)).toEqual({ first: 0, last: 27 });
  expect(visibleRows(SHORT, 25_600, 12)).toEqual({ first: 972, last: 999 });
  expect(visibleRows({ ...SHORT, count: 3 }, 0, 12)).toEqual({ first: 0, last: 2 });
  expect(visibleRows({ ...SHORT, count: 0 }, 0, 12)).toEqual({ first: 0, last: -1 });
});

test("a row is brought to the middle, unless it is seen", () => {
  expect(topToShow(SHORT, 0, 3)).toBeNull();
  expect(topToShow(SHORT, 0, 500)).toBe(13_000 - 187);
  expect(topToShow(SHORT, 13_000, 0)).toBe(0);
  expect(topToShow(SHORT, 0, 999)).toBe(25_600);
  expect(topToShow(SHORT, 25_600, 999)).toBe(25_600);
});

test("a row stays visible in a list that grew past its end and got lower again", () => {
  const row = 990;
  const seen = clampTop(SHORT, row * SHORT.row);
  const grown = topToKeep({ ...SHORT, view: 900 }, seen, row);
  expect(grown).toBe(26_000 - 900);
  const lower = topToKeep({ ...SHORT, view: 300 }, grown, row);
  expect(topToKeep({ ...SHORT, view: 300 }, lower, row)).toBe(lower);
  expect(lower).toBeLessThanOrEqual(row * SHORT.row);
  expect(lower + 300).toBeGreaterThanOrEqual((row + 1) * SHORT.row);
});
