import { expect, test } from "vitest";
import { CLASSES, markGlyph, markWord, VERDICTS, verdictCell } from "../../../src/base/comparison/verdicts";

test("every verdict has a shape of its own in a map, and none is that of an origin", () => {
  const glyphs = VERDICTS.map((verdict) => verdictCell(verdict).glyph);
  expect(new Set(glyphs).size).toBe(VERDICTS.length);
  expect(glyphs).not.toContain("✖");
});

test("no check mark stands beside a No", () => {
  for (const cls of CLASSES.filter((one) => one !== "exact")) expect(markGlyph(markWord(cls, "no"))).not.toBe("✓");
  expect(markWord("benign", "no")).toBe("absorbed");
  expect(markWord("benign", "yes")).toBe("benign");
  expect(markWord("propagated", "no")).toBe("propagated");
});
