import { expect, test } from "vitest";
import { thinTicks } from "../../../src/base/numbers/axisTicks";

const values = [0, 1, 2, 3, 4, 5, 6, 7];
const texts = ["0", "1e-4", "1e-3", "1e-2", "1e-1", "1e0", "1e1", "inf"];

test("ticks that fit are all written", () => {
  expect(thinTicks({ values, texts }, 8)).toEqual({ values, texts });
});

test("of ticks that do not fit the first and the last stay", () => {
  for (const most of [0, 1, 2, 3, 4, 5, 6, 7]) {
    const thin = thinTicks({ values, texts }, most);
    expect(thin.values.length).toBeLessThanOrEqual(Math.max(2, most));
    expect(thin.texts).toEqual(thin.values.map((value) => texts[value]));
    expect([thin.texts[0], thin.texts.at(-1)]).toEqual(["0", "inf"]);
  }
});
