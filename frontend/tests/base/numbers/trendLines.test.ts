import { expect, test } from "vitest";
import { drawLine, findMagnitudes, findRange, formatSpan, shadeOf } from "../../../src/base/numbers/trendLines";

test("a bucket of one step is that step", () => {
  expect(formatSpan({ first: 3, last: 3 })).toBe("3");
  expect(formatSpan({ first: 3, last: 7 })).toBe("3–7");
});

test("shades follow the magnitude of a row and leave out what has none", () => {
  const range = findMagnitudes([1, -100, "nan", null, 0, "inf"]);
  expect(range).toEqual([1, 100]);
  expect(shadeOf(1, range)).toBe(0);
  expect(shadeOf(-10, range)).toBeCloseTo(0.5);
  expect(shadeOf(100, range)).toBe(1);
  expect([shadeOf("nan", range), shadeOf(null, range), shadeOf(0, range)]).toEqual([0, 0, 0]);
  expect(shadeOf(5, findMagnitudes([5, 5.01]))).toBe(0);
  expect(findMagnitudes(["nan", null, 0])).toBeNull();
});

test("a line breaks where a number is not finite or missing, and says which is which", () => {
  const line = drawLine([0, 10, "nan", 5, null, 10], 0, 10);
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
  expect(drawLine([4], 4, 4).stretches).toEqual([[{ x: 0.5, y: 0.5 }]]);
});

test("the extent is of finite numbers", () => {
  expect(findRange(["inf", -2, 7, null])).toEqual([-2, 7]);
  expect(findRange(["nan"])).toEqual([0, 0]);
});
