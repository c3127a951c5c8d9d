import { expect, test } from "vitest";
import { heatOf } from "../../../src/base/numbers/heat";

test("an error at its floor has no colour, and one of ten thousand floors the deepest", () => {
  expect([null, 0, 0.5, 1].map(heatOf)).toEqual([0, 0, 0, 0]);
  expect(heatOf(100)).toBeCloseTo(0.5);
  expect([10_000, 1e9, "inf"].map(heatOf)).toEqual([1, 1, 1]);
});
