import { expect, test } from "vitest";
import { formatSince } from "../../../src/base/numbers/dates";

test("of today only the time is told", () => {
  const now = new Date(2026, 10, 29, 21, 30);
  expect(formatSince(new Date(2026, 10, 29, 20, 41).toISOString(), "de", now)).toBe("20:41");
  expect(formatSince(new Date(2026, 10, 28, 20, 41).toISOString(), "de", now)).toContain("28.11.2026");
});
