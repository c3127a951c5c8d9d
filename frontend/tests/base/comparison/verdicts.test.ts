import { expect, test } from "vitest";
import { CLASSES, markGlyph, markOf, VERDICTS, verdictCell } from "../../../src/base/comparison/verdicts";

test("every verdict has a shape of its own in a map, and none is that of an origin", () => {
  const glyphs = VERDICTS.map((verdict) => verdictCell(verdict).glyph);
  expect(new Set(glyphs).size).toBe(VERDICTS.length);
  expect(glyphs).not.toContain("✖");
});

test("no check mark stands beside a No", () => {
  for (const cls of CLASSES.filter((one) => one !== "exact")) expect(markGlyph(markOf(cls, "no"))).not.toBe("✓");
  expect(markOf("benign", "no")).toBe("absorbed");
  expect(markOf("benign", "yes")).toBe("benign");
  expect(markOf("propagated", "no")).toBe("propagated");
});
