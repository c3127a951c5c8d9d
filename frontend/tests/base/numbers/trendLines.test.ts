import { expect, test } from "vitest";
import { extent, formatSpan, lineThrough, shade, sizes } from "../../../src/base/numbers/trendLines";

test("a bucket of one step is that step", () => {
  expect(formatSpan({ first: 3, last: 3 })).toBe("3");
  expect(formatSpan({ first: 3, last: 7 })).toBe("3–7");
});

test("shades follow the magnitude of a row and leave out what has none", () => {
  const range = sizes([1, -100, "nan", null, 0, "inf"]);
  expect(range).toEqual([1, 100]);
  expect(shade(1, range)).toBe(0);
  expect(shade(-10, range)).toBeCloseTo(0.5);
  expect(shade(100, range)).toBe(1);
  expect([shade("nan", range), shade(null, range), shade(0, range)]).toEqual([0, 0, 0]);
  expect(shade(5, sizes([5, 5.01]))).toBe(0);
  expect(sizes(["nan", null, 0])).toBeNull();
});

test("a line breaks where a number is not finite or missing, and says which is which", () => {
  const line = lineThrough([0, 10, "nan", 5, null, 10], 0, 10);
  expect(line.stretches).toEqual([
    [
      { x: 0, y: 0 },
      { x: 0.2, y: 1 },
    ],
    [{ x: 0.6, y: 0.5 }],
    [{ x: 1, y: 1 }],
  ]);
  expect(line.breaks).toEqual([2]);
});

test("a lone or constant number stands in the middle", () => {
  expect(lineThrough([4], 4, 4).stretches).toEqual([[{ x: 0.5, y: 0.5 }]]);
});

test("the extent is of finite numbers", () => {
  expect(extent(["inf", -2, 7, null])).toEqual([-2, 7]);
  expect(extent(["nan"])).toEqual([0, 0]);
});
