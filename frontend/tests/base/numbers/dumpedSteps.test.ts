import { expect, test } from "vitest";
import { dumpedFrom } from "../../../src/base/numbers/dumpedSteps";

test("a step that was dumped is its own, else the first one soon after it is", () => {
  expect(dumpedFrom([0, 40, 60, 61], 40)).toBe(40);
  expect(dumpedFrom([61, 60, 0], 41)).toBe(60);
  expect(dumpedFrom([0, 40], 41)).toBe(null);
  expect(dumpedFrom([500], 41)).toBe(null);
  expect(dumpedFrom([], 0)).toBe(null);
});
