import { expect, test } from "vitest";
import { endNews, findEnds, pageTitle, shortCall } from "../../../src/base/comparison/endNews";

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

test("an end is seen once, also of what came, or was made again, between two looks", () => {
  const one = (id: string, status: string, job: string, created: string) => ({ id, status, job, created });
  const old = one("a", "done", "j1", "2026-01-01");
  let [ended, known] = findEnds(null, [old, one("b", "running", "j2", "2026-01-02")]);
  expect(ended).toEqual([]);
  const done = one("b", "done", "j2", "2026-01-02");
  [ended, known] = findEnds(known, [old, done]);
  expect(ended).toEqual([done]);
  const again = one("a", "failed", "j3", "2026-01-01");
  const quick = one("c", "done", "j4", "2026-01-03");
  const longer = one("d", "done", "j0", "2025-12-31");
  [ended, known] = findEnds(known, [again, done, quick, longer]);
  expect(ended).toEqual([again, quick]);
  [ended, known] = findEnds(known, [again, done, quick, longer]);
  expect(ended).toEqual([]);
});
