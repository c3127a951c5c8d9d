import { expect, it } from "vitest";
import { splitMessage } from "../../../src/base/text/jobMessage";

it("takes the provisional origin out of a job's message", () => {
  expect(splitMessage("12 of 500 tensors")).toEqual(["12 of 500 tensors", null]);
  expect(splitMessage("12 of 500 tensors; provisional: Functional.a;b.0.forward")).toEqual([
    "12 of 500 tensors",
    "Functional.a;b.0.forward",
  ]);
});
