import { expect, test } from "vitest";
import { spreadMarks } from "../../../src/base/lists/stripBuckets";

test("marks stand centred at their places", () => {
  expect(spreadMarks([100, 50], 15, 400)).toEqual([93, 43]);
});

test("marks that would cover each other stand side by side, in the order of their places", () => {
  expect(spreadMarks([100, 102, 90], 15, 400)).toEqual([98, 113, 83]);
});

test("marks stay within the strip", () => {
  expect(spreadMarks([0, 399, 398], 15, 400)).toEqual([0, 385, 370]);
});
