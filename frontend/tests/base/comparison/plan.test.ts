import { describe, expect, it } from "vitest";
import {
  NO_SIZES,
  type PlanLayout,
  partsText,
  ranksOf,
  ranksText,
  setWay,
  sortWays,
  swapRanks,
  writeLayout,
  writeSizes,
} from "../../../src/base/comparison/plan";

const SIDE = { offsets: [0], chunks: 1, context: 1, sequence: null, experts: 1 };
const LAYOUT: PlanLayout = {
  units: [
    { rank: 0, target: { ...SIDE, ranks: [[[0, 1]]] }, golden: { ...SIDE, ranks: [[[0]]] } },
    { rank: 2, target: { ...SIDE, ranks: [[[2, 3]]] }, golden: { ...SIDE, ranks: [[[1]]] } },
  ],
  gradients: null,
  dimensions: [{ pattern: "a*", way: 1 }],
};

describe("ranks of one side", () => {
  it("tells shards, stages and replicas apart", () => {
    expect(ranksText([[[0]]])).toBe("0");
    expect(
      ranksText([
        [
          [0, 1],
          [2, 3],
        ],
        [
          [4, 5],
          [6, 7],
        ],
      ]),
    ).toBe("0+1 → 2+3 & 4+5 → 6+7");
  });
});

describe("ways of joining", () => {
  it("lists the most frequent first and reads dimensions", () => {
    expect(sortWays({ sum: 2, "dimension 1": 9, copy: 5 })).toEqual([
      { way: "dimension", dimension: 1, count: 9 },
      { way: "copy", count: 5 },
      { way: "sum", count: 2 },
    ]);
  });
});

describe("a plan that is edited", () => {
  it("gives two ranks each other's place, in whatever unit they are", () => {
    const swapped = swapRanks(LAYOUT, "target", 1, 2);
    expect(swapped.units.map((unit) => unit.target.ranks)).toEqual([[[[0, 2]]], [[[1, 3]]]]);
    expect(ranksOf(swapped, "golden")).toEqual([0, 1]);
    expect(swapRanks(swapped, "target", 2, 1)).toEqual(LAYOUT);
  });

  it("counts a new pattern before the others, and changes or forgets a known one in its place", () => {
    const added = setWay(LAYOUT, "ab", "skip");
    expect(added.dimensions).toEqual([
      { pattern: "ab", way: "skip" },
      { pattern: "a*", way: 1 },
    ]);
    expect(setWay(added, "a*", "sum").dimensions[1]).toEqual({ pattern: "a*", way: "sum" });
    expect(setWay(added, "ab", null)).toEqual(LAYOUT);
  });

  it("is written with all that it says", () => {
    const written = JSON.parse(writeLayout({ ...LAYOUT, gradients: "mean" }));
    expect(written.units[1]).toEqual({
      rank: 2,
      target: { ranks: [[[2, 3]]], offsets: [0], chunks: 1, context: 1, experts: 1 },
      golden: { ranks: [[[1]]], offsets: [0], chunks: 1, context: 1, experts: 1 },
    });
    expect([written.gradients, written.dimensions]).toEqual(["mean", { "a*": 1 }]);
  });

  it("is written by the sizes that were given", () => {
    const sizes = { target: { ...NO_SIZES, tp: 2, order: "tp-dp-pp" }, golden: NO_SIZES };
    expect(JSON.parse(writeSizes(sizes, LAYOUT))).toEqual({
      target: { tp: 2, order: "tp-dp-pp" },
      golden: {},
      dimensions: { "a*": 1 },
    });
  });
});

describe("parts of a tensor", () => {
  it("are told once where they are alike, each where they are not", () => {
    expect(partsText([64, 16], 0, null, 2)).toBe("[32, 16] × 2");
    expect(partsText([4, 13], 1, [7, 6], 2)).toBe("[4, 7] + [4, 6]");
  });
});
