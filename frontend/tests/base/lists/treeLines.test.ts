import { describe, expect, test } from "vitest";
import {
  type Branch,
  type Entry,
  firstMissing,
  flattenTree,
  foldCurve,
  foldSpan,
  foldTrouble,
  indentation,
  type Span,
  TOP,
  withSpan,
} from "../../../src/base/lists/treeLines";

const CLEAN = { no: 0, warning: 0, yes: 3, na: 0, origin: 0 };

const entry = (number: number, label: string, parent: number | null, more: Partial<Entry> = {}): Entry => ({
  entry: number,
  name: `Module.${label}`,
  label,
  parent,
  order: number,
  kind: "module",
  direction: "forward",
  children: 0,
  ...more,
});

const branch = (items: Entry[], total = items.length): Branch => withSpan(undefined, span(0, items, total), total);

const span = (start: number, items: Entry[], total: number): Span => ({
  items,
  start,
  prev: start > 0 ? `before ${start}` : null,
  next: start + items.length < total ? `after ${start + items.length}` : null,
});

const entries = (from: number, to: number): Entry[] =>
  Array.from({ length: to - from }, (_, index) => entry(from + index, `e${"abcdefghij"[(from + index) % 10]}`, null));

describe("the tree", () => {
  test("lists open branches in order with their depth", () => {
    const branches = new Map([
      [TOP, branch([entry(0, "a", null, { children: 2 }), entry(3, "b", null)])],
      [0, branch([entry(1, "a.x", 0), entry(2, "a.y", 0)])],
    ]);
    const lines = flattenTree(branches, new Set([0]));
    expect(lines.map((line) => [line.key, line.depth])).toEqual([
      ["entry:0", 0],
      ["entry:1", 1],
      ["entry:2", 1],
      ["entry:3", 0],
    ]);
    expect(lines[0]).toMatchObject({ expanded: true, position: 1, setSize: 2 });
    expect(flattenTree(branches, new Set()).map((line) => line.key)).toEqual(["entry:0", "entry:3"]);
  });

  test("asks for a branch that is open but not loaded", () => {
    const branches = new Map([[TOP, branch([entry(0, "a", null, { children: 2 })])]]);
    expect(flattenTree(branches, new Set([0]))[1]).toMatchObject({ type: "more", parent: 0, depth: 1, loading: true });
    expect(flattenTree(new Map(), new Set())).toMatchObject([{ type: "more", parent: TOP, loading: true }]);
  });

  test("ends a branch that goes on with a line that says so", () => {
    const lines = flattenTree(new Map([[TOP, branch([entry(0, "a", null)], 400)]]), new Set());
    expect(lines.at(-1)).toMatchObject({ type: "more", parent: TOP, loading: false, gap: 1, hidden: 399 });
    expect(lines[0]).toMatchObject({ position: 1, setSize: 400 });
  });
});

describe("a branch of many", () => {
  const first = branch(entries(0, 100), 5000);
  const islands = withSpan(first, span(4000, entries(4000, 4040), 5000), 5000);

  test("has a line for what lies between the parts that are here", () => {
    const lines = flattenTree(new Map([[TOP, islands]]), new Set());
    expect(lines.filter((line) => line.type === "more")).toMatchObject([
      { gap: 1, hidden: 3900 },
      { gap: 2, hidden: 960 },
    ]);
    expect(lines[101]).toMatchObject({ type: "entry", position: 4001, setSize: 5000 });
  });

  test("joins parts that touch or overlap, with the cursors of their ends", () => {
    const touching = withSpan(islands, span(4040, entries(4040, 4240), 5000), 5000);
    expect(touching.spans[1]).toEqual(span(4000, entries(4000, 4240), 5000));
    const before = withSpan(touching, span(3900, entries(3900, 4010), 5000), 5000);
    expect(before.spans[1]).toEqual(span(3900, entries(3900, 4240), 5000));
    const all = withSpan(before, span(50, entries(50, 3950), 5000), 5000);
    expect(all.spans).toEqual([span(0, entries(0, 4240), 5000)]);
  });

  test("takes a part within another without losing the rest", () => {
    expect(withSpan(islands, span(10, entries(10, 20), 5000), 5000)).toEqual(islands);
  });
});

test("the first level that is not here is asked for", () => {
  const branches = new Map([
    [TOP, branch([entry(0, "a", null)])],
    [0, branch(entries(1, 3), 9)],
  ]);
  expect(firstMissing(branches, [0])).toBeNull();
  expect(firstMissing(branches, [0, 2])).toBeNull();
  expect(firstMissing(branches, [0, 7])).toBe(1);
  expect(firstMissing(branches, [0, 2, 9])).toBe(2);
  expect(firstMissing(new Map(), [0])).toBe(0);
});

test("a chain of any depth is listed, and moves left where it would leave the view", () => {
  const deep = 20_000;
  const chain = Array.from({ length: deep }, (_, level) => entry(level, `m${level}`, level - 1, { children: 1 }));
  const branches = new Map(chain.map((one, level) => [level === 0 ? TOP : level - 1, branch([one])]));
  const lines = flattenTree(branches, new Set(chain.slice(0, -1).map((one) => one.entry)));
  expect(lines).toHaveLength(deep);
  expect(lines.at(-1)).toMatchObject({ depth: deep - 1, position: 1, setSize: 1 });
});

test("lines are moved left as far as those in view are deep, and never fill the panel with their indent", () => {
  expect(indentation([])).toEqual({ shift: 0, step: 14 });
  expect(indentation([0, 1, 2, 8])).toEqual({ shift: 0, step: 14 });
  expect(indentation([5, 6, 9])).toEqual({ shift: 4, step: 14 });
  const chain = Array.from({ length: 30 }, (_, line) => 2970 + line);
  const { shift, step } = indentation(chain);
  expect(shift).toBe(2969);
  expect(30 * step).toBe(120);
});

test("the backward pass is marked where it begins, not on everything below", () => {
  const back = { direction: "backward" };
  const branches = new Map([
    [TOP, branch([entry(0, "a", null), entry(1, "a", null, { ...back, children: 1 }), entry(3, "lone", null, back)])],
    [1, branch([entry(2, "a.x", 1, back)])],
  ]);
  const marked = flattenTree(branches, new Set([1])).filter((line) => line.type === "entry" && line.turns);
  expect(marked.map((line) => line.key)).toEqual(["entry:1", "entry:3"]);
});

describe("equal layers", () => {
  const layers = Array.from({ length: 10 }, (_, number) =>
    entry(number, `layers.${number}`, null, { children: 4, counts: { ...CLEAN } }),
  );

  test("share one line", () => {
    const lines = flattenTree(new Map([[TOP, branch(layers)]]), new Set());
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ type: "fold" });
  });

  test("unfold around a bad one", () => {
    const dirty = layers.map((layer) => (layer.entry === 5 ? { ...layer, counts: { ...CLEAN, no: 1 } } : layer));
    const lines = flattenTree(new Map([[TOP, branch(dirty)]]), new Set());
    expect(lines.map((line) => line.type)).toEqual(["fold", "entry", "fold"]);
    expect(lines[1]).toMatchObject({ entry: { entry: 5 } });
  });

  test("that are not right share a line too where they are many, with their error from layer to layer", () => {
    const counts = { ...CLEAN, no: 2, warning: 1 };
    const dirty = layers.map((layer) => ({ ...layer, counts, out_score: 10 ** layer.entry }));
    const lines = flattenTree(new Map([[TOP, branch(dirty)]]), new Set());
    expect(lines).toMatchObject([{ type: "fold", dirty: true }]);
    expect(foldTrouble(dirty)).toMatchObject({ no: 20, warning: 10, worst: { entry: 9 } });
    expect(foldCurve(dirty, 20).slice(0, 2)).toEqual([
      [0, 1],
      [1 / 9, 1 - 1 / 9],
    ]);
    expect(
      foldCurve(
        dirty.map((layer) => ({ ...layer, out_score: 5 })),
        20,
      ).every(([, y]) => y === 0.5),
    ).toBe(true);
    expect(foldCurve(dirty, 5).map(([x]) => Math.round(9 * x))).toEqual([0, 2, 4, 6, 8]);
    const cause = dirty.map((layer) => (layer.entry === 0 ? { ...layer, counts: { ...counts, origin: 1 } } : layer));
    const around = flattenTree(new Map([[TOP, branch(cause)]]), new Set());
    expect(around.map((line) => line.type)).toEqual(["entry", "fold"]);
    expect(flattenTree(new Map([[TOP, branch(dirty.slice(0, 7))]]), new Set())).toHaveLength(7);
  });

  test("unfold around the selection and when asked", () => {
    const branches = new Map([[TOP, branch(layers)]]);
    const kept = flattenTree(branches, new Set(), new Set(), new Set([4]));
    expect(kept.map((line) => line.type)).toEqual(["fold", "entry", "fold"]);
    expect(flattenTree(branches, new Set(), new Set([`${TOP}:0`]))).toHaveLength(10);
  });

  test("are not folded when they are few, differ in shape or carry no verdict", () => {
    expect(flattenTree(new Map([[TOP, branch(layers.slice(0, 3))]]), new Set())).toHaveLength(3);
    const mixed = layers.map((layer) => ({ ...layer, children: layer.entry % 2 ? 4 : 5 }));
    expect(flattenTree(new Map([[TOP, branch(mixed)]]), new Set())).toHaveLength(10);
    const dump = layers.map(({ counts: _counts, ...layer }) => layer);
    expect(flattenTree(new Map([[TOP, branch(dump)]]), new Set())).toHaveLength(10);
  });
});

test("a fold says the shared name once", () => {
  expect(foldSpan("layers.0 (Block)", "layers.998 (Block)")).toBe("layers.0…998 (Block)");
  expect(foldSpan("linear.3", "linear.9")).toBe("linear.3…9");
  expect(foldSpan("layers.0.fc1", "layers.1.fc2")).toBe("layers.0.fc1 … layers.1.fc2");
});
