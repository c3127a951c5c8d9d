import { describe, expect, it } from "vitest";
import { ranksText, waysOf } from "../src/base/plan";

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
    expect(waysOf({ sum: 2, "dimension 1": 9, copy: 5 })).toEqual([
      { way: "dimension", dimension: 1, count: 9 },
      { way: "copy", count: 5 },
      { way: "sum", count: 2 },
    ]);
  });
});
