import { describe, expect, it } from "vitest";
import { findNearestUnit } from "../../../src/base/address/nearestUnit";

const UNITS = [
  { step: 0, rank: 0 },
  { step: 0, rank: 1 },
  { step: 3, rank: 1 },
];

describe("nearestUnit", () => {
  it("is the one that is named", () => {
    expect(findNearestUnit(UNITS, 0, 1)).toBe(UNITS[1]);
  });
  it("keeps the step where the rank is not there", () => {
    expect(findNearestUnit(UNITS, 3, 0)).toBe(UNITS[2]);
    expect(findNearestUnit(UNITS, 0, 9)).toBe(UNITS[0]);
  });
  it("is the first where the step is not there", () => {
    expect(findNearestUnit(UNITS, 9, 1)).toBe(UNITS[0]);
    expect(findNearestUnit(UNITS, null, null)).toBe(UNITS[0]);
  });
  it("is none of nothing", () => {
    expect(findNearestUnit([], 0, 0)).toBeNull();
  });
});
