import { expect, test } from "vitest";
import { formatCheckpointAddress, parseCheckpointAddress } from "../../src/base/address/checkpoint";

test("an address comes back as it was", () => {
  for (const search of ["", "state=differs%2Cform&q=mlp+down&sort=-largest&n=3", "q=%25", "sort=name"])
    expect(formatCheckpointAddress(parseCheckpointAddress(search))).toBe(search);
});

test("what an address cannot mean is left out", () => {
  expect(parseCheckpointAddress("state=bad,equal&sort=age&n=-1")).toEqual({
    states: ["equal"],
    query: "",
    sort: "worst",
    tensor: null,
  });
});
