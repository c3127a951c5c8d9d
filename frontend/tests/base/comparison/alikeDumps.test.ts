import { expect, test } from "vitest";
import { rankAlike } from "../../../src/base/comparison/alikeDumps";

const dump = (name: string, nodes: number, more: Partial<{ framework: string; task: string; level: string }> = {}) => ({
  name,
  nodes,
  framework: "pytorch",
  task: "tensor",
  level: "mix",
  ...more,
});

test("dumps of the same program come first: its framework, its number of calls, its level and task", () => {
  const own = dump("own", 163);
  const others = [
    dump("other framework", 163, { framework: "mindspore" }),
    dump("other model", 40),
    dump("other task", 163, { task: "statistics" }),
    dump("same", 163),
    dump("one call more", 164),
  ];
  expect(rankAlike(own, others).map(({ name }) => name)).toEqual([
    "same",
    "one call more",
    "other task",
    "other model",
    "other framework",
  ]);
});

test("equally similar dumps keep their order, and an empty one is like an empty one", () => {
  const newest = [dump("newest", 0), dump("older", 0)];
  expect(rankAlike(dump("own", 0), newest)).toEqual(newest);
});
