import { expect, test } from "vitest";
import { endNews, pageTitle, shortCall } from "../../../src/base/comparison/endNews";

test("a call is named by what distinguishes it", () => {
  expect(shortCall("Functional.softmax.1.forward")).toBe("softmax.1");
  expect(shortCall("Tensor.__add__.3199.forward")).toBe("__add__.3199");
  expect(shortCall("Functional.layer_norm.3.backward")).toBe("layer_norm.3");
  expect(shortCall("Distributed.all_reduce.0.forward")).toBe("all_reduce.0");
  expect(shortCall("Functional_softmax_1_forward")).toBe("softmax_1");
  expect(shortCall("Module.layers.1.attn.Attn.forward.0")).toBe("layers.1.attn.Attn");
});

test("an end is a sign and a word", () => {
  const word = (end: string) => `<${end}>`;
  const origin = { node: "Functional.softmax.1.forward" };
  expect(endNews({ status: "done", origin }, word)).toBe("✖ softmax.1");
  expect(endNews({ status: "done", origin: null }, word)).toBe("✓ <none>");
  expect(endNews({ status: "failed", origin: null }, word)).toBe("⚠ <failed>");
  expect(endNews({ status: "cancelled", origin }, word)).toBe("<cancelled>");
});

test("the title of a page ends in the name of the program", () => {
  expect(pageTitle("✖ softmax.1")).toBe("✖ softmax.1 - dumpscope");
  expect(pageTitle(null)).toBe("dumpscope");
});
