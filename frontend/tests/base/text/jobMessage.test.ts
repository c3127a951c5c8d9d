import { expect, it } from "vitest";
import { splitJobMessage } from "../../../src/base/text/jobMessage";

it("takes the provisional origin out of a job's message", () => {
  expect(splitJobMessage("12 of 500 tensors")).toEqual(["12 of 500 tensors", null]);
  expect(splitJobMessage("12 of 500 tensors; provisional: Functional.a;b.0.forward")).toEqual([
    "12 of 500 tensors",
    "Functional.a;b.0.forward",
  ]);
});
