import { expect, test } from "vitest";
import { findDiffering } from "../../../src/base/comparison/leaves";
import { CLASSES, GLYPHS, toClass } from "../../../src/base/comparison/verdicts";
import { bucketAt, bucketLeft, findBucket } from "../../../src/base/lists/stripBuckets";
import { apiName, callLabel, cutMiddle, splitName, turnLabel, wholeFirst } from "../../../src/base/text/callNames";
import { groupIntoDumps, type PickedFile } from "../../../src/base/upload/pickedFiles";

test("a split name is whole again when joined, also inside a surrogate pair", () => {
  for (const name of ["", "short", "Functional.softmax.1.forward", "🙂".repeat(40), "模型".repeat(90)]) {
    const [head, tail] = splitName(name, 9);
    expect(head + tail).toBe(name);
    expect(Array.from(tail).length).toBeLessThanOrEqual(9);
  }
});

test("a cut name keeps its end and its length", () => {
  const cut = cutMiddle("Module.layers.1.attn.qkv.Linear.forward.0", 20);
  expect(Array.from(cut)).toHaveLength(20);
  expect(cut.endsWith("forward.0")).toBe(true);
});

test("the API of a node is its name without call number and direction", () => {
  expect(apiName("Functional.softmax.1.forward")).toBe("Functional.softmax");
  expect(apiName("Module.a.B.forward.0")).toBe("Module.a.B.forward.0");
});

test("names of ptdbg with underscores are understood as those with dots", () => {
  expect(apiName("Functional_softmax_1_forward")).toBe("Functional.softmax");
  expect(apiName("Tensor___add___0_backward")).toBe("Tensor.__add__");
  expect(apiName("Tensor_add__12_forward#2")).toBe("Tensor.add_");
  expect(callLabel("Functional_softmax_1_forward#2")).toBe("Functional_softmax_1#2");
  expect(turnLabel("Functional_softmax_1_backward")).toBe("1.backward");
  expect(turnLabel("Functional.softmax.1.backward")).toBe("1.backward");
  expect(turnLabel("Module.a.B.backward.0")).toBe("backward.0");
});

test("every pixel of the strip belongs to the bucket drawn there", () => {
  for (const [count, width] of [
    [163, 1250],
    [1000, 1000],
    [7, 3],
    [1250, 1249],
  ] as const) {
    for (let index = 0; index < count; index += 1) {
      const left = bucketLeft(index, count, width);
      if (bucketLeft(index + 1, count, width) > left) expect(bucketAt(left, count, width)).toBe(index);
    }
    expect(bucketAt(-5, count, width)).toBe(0);
    expect(bucketAt(width + 5, count, width)).toBe(count - 1);
  }
  expect(bucketAt(1, 0, 100)).toBe(-1);
});

test("a place in call order finds its bucket, a gap finds none", () => {
  const buckets = [
    { first: 0, last: 9, cls: "exact" },
    { first: 12, last: 20, cls: "exact" },
  ];
  expect([0, 9, 10, 12, 20, 21].map((order) => findBucket(order, buckets))).toEqual([0, 0, -1, 1, 1, -1]);
});

test("dropped folders, archives and loose files become one dump each", () => {
  const picked = (path: string, size = 1): PickedFile => ({ path, file: { size } as File });
  const bundles = groupIntoDumps([
    picked("a/step0/dump.json", 5),
    picked("a/step0/stack.json", 6),
    picked("b/dump.json"),
    picked("run.tar.gz"),
    picked("dump.json"),
    picked("stack.json"),
  ]);
  expect(bundles.map(({ name, files, bytes }) => [name, files.length, bytes])).toEqual([
    ["a", 2, 11],
    ["b", 1, 1],
    ["run.tar.gz", 1, 1],
    ["dump.json", 2, 2],
  ]);
});

test("NaN on both sides is no difference, NaN against absent is one", () => {
  const leaf = {
    dtype: null,
    type: null,
    shape: null,
    max: "nan",
    min: null,
    mean: 1,
    norm: "inf",
    md5: null,
    value: null,
  };
  expect(findDiffering(leaf, leaf).size).toBe(0);
  expect([...findDiffering(leaf, { ...leaf, max: null, norm: "-inf" })]).toEqual(["max", "norm"]);
  expect(findDiffering(leaf, null).size).toBe(0);
});

test("every class has a glyph, and bad ones have their own", () => {
  for (const cls of CLASSES) expect(GLYPHS[cls]).toBeTruthy();
  const bad = CLASSES.filter((cls) => cls !== "benign" && cls !== "exact").map((cls) => GLYPHS[cls]);
  expect(new Set(bad).size).toBe(bad.length);
  expect(toClass("nonsense")).toBe("unknown");
});

test("a call's label leaves out what its place says anyway", () => {
  expect(callLabel("Functional.dropout.1.forward")).toBe("Functional.dropout.1");
  expect(callLabel("Module.layers.1.attn.Attn.backward.0")).toBe("layers.1.attn.Attn");
  expect(callLabel("Module.block.Block.forward.2")).toBe("block.Block #2");
  expect(callLabel("Module.head.Linear.parameters_grad.0")).toBe("Module.head.Linear.parameters_grad.0");
});

test("names with the text as whole parts come first, others in their order", () => {
  const named = ["F.softmax.10.forward", "F.softmax.1.forward", "F.log_softmax.1.forward"].map((name) => ({ name }));
  expect(wholeFirst(named, "softmax.1").map(({ name }) => name)).toEqual([
    "F.softmax.1.forward",
    "F.softmax.10.forward",
    "F.log_softmax.1.forward",
  ]);
  expect(wholeFirst(named, "softm")).toEqual(named);
});
