import { describe, expect, test } from "vitest";
import { drawLine, findColumns, layOut, type PathNode, spread } from "../../../src/base/comparison/pathLayout";
import { walk } from "../../../src/base/comparison/pathWalk";

const node = (key: string, order: number, hop: number): PathNode => ({ key, order, hop, height: 40 });

/** `a` goes into `add` twice: over `b`, and past it. */
const RESIDUAL = [node("a", 1, -1), node("b", 2, -1), node("add", 3, 0), node("c", 4, 1), node("d", 5, 1)];
const LINES = [
  { from: "a", to: "b" },
  { from: "a", to: "add" },
  { from: "b", to: "add" },
  { from: "add", to: "c" },
  { from: "add", to: "d" },
];

describe("the layout of a path", () => {
  test("puts the maker of a maker further left, within the steps that are shown", () => {
    expect(Object.fromEntries(findColumns(RESIDUAL, LINES, 2))).toEqual({ a: -2, b: -1, add: 0, c: 1, d: 1 });
    expect(findColumns(RESIDUAL, LINES, 1).get("a")).toBe(-1);
  });

  test("keeps a passage free where a line goes past a column", () => {
    const { boxes, lines, first, columns } = layOut(RESIDUAL, LINES, 2);
    expect([first, columns]).toEqual([-2, 4]);
    const past = lines.find(({ from, to }) => from === "a" && to === "add");
    expect(past?.stops.map(({ column }) => column)).toEqual([-2, -1, 0]);
    const passage = past?.stops[1]?.y ?? 0;
    const top = boxes.get("b")?.top ?? 0;
    expect(passage < top || passage > top + 40).toBe(true);
  });

  test("lets no box cover another", () => {
    const many = [node("m", 0, 0), ...Array.from({ length: 9 }, (_, place) => node(`n${place}`, place + 1, 1))];
    const { boxes } = layOut(
      many,
      many.slice(1).map(({ key }) => ({ from: "m", to: key })),
      1,
    );
    const tops = many.slice(1).map(({ key }) => boxes.get(key)?.top ?? 0);
    tops.sort((a, b) => a - b);
    expect(Math.min(...tops.slice(1).map((top, place) => top - (tops[place] ?? 0)))).toBeGreaterThanOrEqual(40);
    expect(tops[0]).toBeGreaterThanOrEqual(0);
  });

  test("moves labels apart and keeps their order", () => {
    const found = spread([10, 12, 11, 80], 20);
    expect(found[3]).toBe(80);
    expect((found[1] ?? 0) - (found[2] ?? 0)).toBeGreaterThanOrEqual(19);
    expect((found[2] ?? 0) - (found[0] ?? 0)).toBeGreaterThanOrEqual(19);
  });

  test("draws a line through all its points", () => {
    expect(drawLine([], 8)).toBe("");
    expect(
      drawLine(
        [
          { x: 0, y: 5 },
          { x: 20, y: 9 },
        ],
        8,
      ),
    ).toBe("M0 5C10 5 10 9 20 9");
  });
});

describe("an arrow key", () => {
  const { boxes } = layOut(RESIDUAL, LINES, 2);
  const walked = RESIDUAL.map(({ key }) => ({ key, column: 0, top: 0, ...boxes.get(key) }));
  const lines = LINES.map((line) => ({ ...line, way: line.from === "b", differs: line.to === "d" }));
  test("follows lines: the way first, then what differs", () => {
    expect(walk(walked, lines, "add", "ArrowLeft")).toBe("b");
    expect(walk(walked, lines, "add", "ArrowRight")).toBe("d");
    expect(walk(walked, lines, "a", "ArrowLeft")).toBeNull();
  });

  test("goes up and down in its column", () => {
    const [upper, lower] = ["c", "d"].sort((a, b) => (boxes.get(a)?.top ?? 0) - (boxes.get(b)?.top ?? 0)) as [
      string,
      string,
    ];
    expect(walk(walked, lines, upper, "ArrowDown")).toBe(lower);
    expect(walk(walked, lines, upper, "ArrowUp")).toBeNull();
    expect(walk(walked, lines, "gone", "ArrowDown")).toBeNull();
  });
});
