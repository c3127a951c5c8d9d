import { describe, expect, it } from "vitest";
import { previewRows, type Record } from "../../../src/base/comparison/matchPreview";

function leaf(role: string, path: string, shape: number[] | null, dtype: string | null = "torch.float32"): Record {
  const none = { max: null, min: null, mean: null, norm: null, md5: null, value: null };
  return { role, path, shape, dtype, type: "torch.Tensor", ...none };
}

describe("what a match made by hand would compare", () => {
  it("pairs records by role and place", () => {
    const rows = previewRows(
      [leaf("input", "0", [2, 3]), leaf("output", "0", [2, 3])],
      [leaf("output", "0", [2, 3]), leaf("input", "0", [2, 3])],
    );
    expect(rows.map((row) => [row.role, row.fit])).toEqual([
      ["input", "same"],
      ["output", "same"],
    ]);
  });

  it("tells shape, dtype and what is on one side only apart; [] is not [1]", () => {
    const rows = previewRows(
      [leaf("input", "0", []), leaf("input", "1", [4], "torch.bfloat16"), leaf("input", "2", [4])],
      [leaf("input", "0", [1]), leaf("input", "1", [4]), leaf("output", "0", [4])],
    );
    expect(rows.map((row) => row.fit)).toEqual(["shape", "dtype", "alone", "alone"]);
    expect(rows.map((row) => row.target === null)).toEqual([false, false, false, true]);
  });
});
