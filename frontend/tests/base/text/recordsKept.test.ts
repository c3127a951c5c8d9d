import { expect, test } from "vitest";
import { keptRecords } from "../../../src/base/text/recordsKept";

test.each([
  ["The file ends too early after 'Tensor.add.0.forward'; 1234 complete records were kept. Copy it again.", "1234"],
  ["0 complete records were read from its journal. 7 bytes behind them are not whole.", "0"],
  ["The file ends in the middle of a line; 1 complete record in it was kept.", "1"],
  ["The file is empty; 12 bytes were expected.", null],
])("%s", (message, kept) => {
  expect(keptRecords(message)).toBe(kept);
});
