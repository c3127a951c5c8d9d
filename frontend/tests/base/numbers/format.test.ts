import { describe, expect, test } from "vitest";
import {
  barLength,
  exactReal,
  formatBytes,
  formatCount,
  formatError,
  formatReal,
  formatRuns,
  formatSeconds,
  formatShare,
  parseNumbers,
  toNumber,
} from "../../../src/base/numbers/format";

describe("a number", () => {
  test("that is not a number, infinite, absent, zero or huge never looks like another", () => {
    const shown = ["nan", "inf", "-inf", null, 0, -0, "9007199254740993", 9007199254740992].map((value) =>
      formatReal(value),
    );
    expect(new Set(shown).size).toBe(shown.length);
    expect(shown).toEqual(["NaN", "+inf", "-inf", "—", "0", "-0", "9007199254740993", "9.0072e15"]);
  });

  test("past 2^53 keeps all its digits", () => {
    expect(formatReal("18446744073709551615")).toBe("18446744073709551615");
    expect(exactReal("-9223372036854775808")).toBe("-9223372036854775808");
  });

  test.each([
    [1, "1"],
    [-3.5, "-3.5"],
    [0.1 + 0.2, "0.3"],
    [1234567, "1234567"],
    [12345678.9, "1.23457e7"],
    [0.00001234567, "1.23457e-5"],
    [1e300, "1e300"],
    [0.0001, "0.0001"],
    [3.217, "3.217"],
  ])("%d is shown as %s", (value, text) => {
    expect(formatReal(value)).toBe(text);
  });

  test("says everything in its title", () => {
    expect(exactReal(0.1 + 0.2)).toBe("0.30000000000000004");
    expect(exactReal(undefined)).toBe("—");
  });

  test("comes back from the wire", () => {
    expect(toNumber("nan")).toBeNaN();
    expect(toNumber("-inf")).toBe(Number.NEGATIVE_INFINITY);
    expect(toNumber(null)).toBeNull();
    expect(toNumber("12")).toBe(12);
  });
});

describe("an error", () => {
  test.each([
    [0, "0"],
    [0.1, "10%"],
    [0.00052, "0.052%"],
    [1, "100%"],
    [12.5, "1250%"],
    [1e-9, "1e-7%"],
    [1e9, "1e11%"],
    ["inf", "+inf"],
    ["nan", "NaN"],
    [null, "—"],
  ])("%s is shown as %s", (value, text) => {
    expect(formatShare(value)).toBe(text);
  });

  test("has a bar of the quantity that its figure shows", () => {
    expect(barLength(0, 165)).toBe(0);
    expect(barLength(1.1e-7, 165)).toBeLessThan(barLength(1e-3, 2));
    expect(barLength(1, 2)).toBe(1);
    expect(barLength(0, "inf")).toBe(1);
  });

  test("has a longer bar the larger it is, and none where nothing was compared", () => {
    const lengths = [null, 0, 1e-9, 1, 100, 1e6, "inf"].map((score) => barLength(null, score));
    expect(lengths).toEqual([...lengths].sort((a, b) => a - b));
    expect(lengths[0]).toBe(0);
    expect(lengths[1]).toBe(0);
    expect(lengths[2]).toBeGreaterThan(0);
    expect(barLength(null, "nan")).toBe(1);
  });
});

test("counts, bytes, seconds and runs are readable", () => {
  expect(formatCount(1234567)).toBe("1\u202f234\u202f567");
  expect(formatBytes(2_400_000)).toBe("2.4 MB");
  expect(formatBytes(0)).toBe("0 B");
  expect(formatSeconds(185, ["h", "min", "s"])).toBe("3 min 5 s");
  expect(formatSeconds(7_260, ["小时", "分", "秒"])).toBe("2 小时 1 分");
  expect(formatRuns([3, 0, 1, 2, 7])).toBe("0–3, 7");
  expect(formatRuns([])).toBe("—");
});

test("a list of steps is read as it is written", () => {
  expect(parseNumbers("0, 2-4 9")).toEqual([0, 2, 3, 4, 9]);
  expect(parseNumbers("")).toEqual([]);
  expect(parseNumbers("4-2")).toBeNull();
  expect(parseNumbers("0-99999999")).toBeNull();
  expect(parseNumbers("x")).toBeNull();
});

describe("an error in the list", () => {
  test.each([
    [0.0032, 32.1, "0.32%"],
    [0, 0, "0"],
    [null, null, "—"],
    [null, 0, "0"],
    [null, 0.0014, "0.0014×"],
    [null, 165.2, "165×"],
    [null, 3e7, "3e7×"],
    [0, "inf", "∞"],
    [null, "inf", "∞"],
    ["nan", "inf", "NaN"],
    [0.5, "inf", "50%"],
    [null, "nan", "NaN"],
  ])("%s at %s floors reads %s", (error, score, text) => {
    expect(formatError(error, score)).toBe(text);
  });
});
