import { expect, test } from "vitest";
import type { Pair } from "../../../src/api/types";
import { nextNumberSort, parseAddress } from "../../../src/base/address/address";
import { sortNumbers } from "../../../src/widgets/tensors/sortNumbers";

const pair = (id: number, target: unknown, golden: unknown = null) =>
  ({ id, target_leaf: target === null ? null : { max: target }, golden_leaf: { max: golden } }) as unknown as Pair;
const order = (pairs: readonly Pair[], sort: "max" | "-max") => sortNumbers(pairs, sort, String).map(({ id }) => id);

test("tensors without a number come last both ways, and one side stands in for the other", () => {
  const pairs = [
    pair(1, 2),
    pair(2, "nan"),
    pair(3, "-inf"),
    pair(4, null, 3),
    pair(5, "inf"),
    pair(6, null),
    pair(7, 2),
  ];
  expect(order(pairs, "max")).toEqual([3, 1, 7, 4, 5, 2, 6]);
  expect(order(pairs, "-max")).toEqual([5, 4, 1, 7, 3, 2, 6]);
});

test("names sort as people count", () => {
  const label = (one: Pair) => `input ${one.id}`;
  const pairs = [pair(10, 0), pair(9, 0), pair(100, 0)];
  expect(sortNumbers(pairs, "name", label).map(({ id }) => id)).toEqual([9, 10, 100]);
});

test("a third click on a title shows again what differs first", () => {
  expect(["-norm", "norm", null]).toEqual([
    nextNumberSort("max", "norm"),
    nextNumberSort("-norm", "norm"),
    nextNumberSort("norm", "norm"),
  ]);
  expect(parseAddress("io=-norm").numbers).toBe("-norm");
  expect(parseAddress("io=-size").numbers).toBeNull();
});
