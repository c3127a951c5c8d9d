import { describe, expect, test } from "vitest";
import { type Candidate, nameOnSide, onlySide, rankCandidates } from "../../../src/base/comparison/unmatched";

function call(pair: number, change: Partial<Candidate> = {}): Candidate {
  const name = `call.${pair}`;
  const both = { name, golden_name: name, match: "exact", leftover: null };
  return { pair, order: pair, direction: "forward", ...both, ...change };
}

const targetOnly = { golden_name: null, match: "none", leftover: "inserted" };
const goldenOnly = { match: "none", leftover: "inserted" };

describe("a call without a partner", () => {
  test("is of the side whose name it has", () => {
    expect(onlySide(call(1))).toBeNull();
    expect(onlySide(call(1, targetOnly))).toBe("target");
    expect(onlySide(call(1, goldenOnly))).toBe("golden");
    expect(onlySide(call(1, { match: "fused", leftover: "inside" }))).toBe("golden");
    expect(onlySide(call(1, { match: "none" }))).toBe("golden");
  });

  test("has a name on that side only", () => {
    expect(nameOnSide(call(1, targetOnly), "golden")).toBeNull();
    expect(nameOnSide(call(1, goldenOnly), "target")).toBeNull();
    expect(nameOnSide(call(1, { golden_name: "other", match: "renamed" }), "golden")).toBe("other");
  });
});

describe("candidates for a partner", () => {
  const rows = [call(1), call(4), call(9, goldenOnly), call(2, goldenOnly), call(5, targetOnly), call(6)];

  test("come nearest first, those without a partner before the others", () => {
    expect(rankCandidates(rows, "golden", call(5, targetOnly)).map((row) => row.pair)).toEqual([2, 9, 4, 6, 1]);
  });

  test("go in the same direction and are named once", () => {
    const mixed = [...rows, ...rows, call(7, { direction: "backward" })];
    expect(rankCandidates(mixed, "golden", call(5, targetOnly)).map((row) => row.pair)).toEqual([2, 9, 4, 6, 1]);
  });
});
