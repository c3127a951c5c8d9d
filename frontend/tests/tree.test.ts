import { describe, expect, test } from "vitest";
import { type Branch, type Entry, flattenTree, foldSpan, TOP } from "../src/base/tree";

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

const branch = (items: Entry[], next: string | null = null): Branch => ({ items, next });

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
    const lines = flattenTree(new Map([[TOP, branch([entry(0, "a", null)], "cursor")]]), new Set());
    expect(lines.at(-1)).toMatchObject({ type: "more", parent: TOP, loading: false });
    expect(lines[0]).toMatchObject({ setSize: -1 });
  });
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
