import { describe, expect, it } from "vitest";
import { nearestUnit } from "../../../src/base/address/nearestUnit";

const UNITS = [
  { step: 0, rank: 0 },
  { step: 0, rank: 1 },
  { step: 3, rank: 1 },
];

describe("nearestUnit", () => {
  it("is the one that is named", () => {
    expect(nearestUnit(UNITS, 0, 1)).toBe(UNITS[1]);
  });
  it("keeps the step where the rank is not there", () => {
    expect(nearestUnit(UNITS, 3, 0)).toBe(UNITS[2]);
    expect(nearestUnit(UNITS, 0, 9)).toBe(UNITS[0]);
  });
  it("is the first where the step is not there", () => {
    expect(nearestUnit(UNITS, 9, 1)).toBe(UNITS[0]);
    expect(nearestUnit(UNITS, null, null)).toBe(UNITS[0]);
  });
  it("is none of nothing", () => {
    expect(nearestUnit([], 0, 0)).toBeNull();
  });
});
