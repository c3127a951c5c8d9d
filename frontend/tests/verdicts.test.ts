import { expect, test } from "vitest";
import { VERDICTS, verdictCell } from "../src/base/verdicts";

test("every verdict has a shape of its own in a map, and none is that of an origin", () => {
  const glyphs = VERDICTS.map((verdict) => verdictCell(verdict).glyph);
  expect(new Set(glyphs).size).toBe(VERDICTS.length);
  expect(glyphs).not.toContain("✖");
});
