import { expect, test } from "vitest";
import { formatMonitorAddress, parseMonitorAddress } from "../../src/base/address/monitor";

test("an address comes back as it was", () => {
  for (const search of [
    "",
    "rank=1&metric=update&stat=ratio&view=alone&order=model&by=module&m=layers.1&q=mlp&n=a.weight&n=b.bias&step=40&first=-3&last=99&a=fc&sort=-step",
    "n=",
    "step=0&first=0",
  ])
    expect(formatMonitorAddress(parseMonitorAddress(search))).toBe(search);
});

test("what an address cannot mean is left out", () => {
  const parsed = parseMonitorAddress("rank=-1&metric=&step=x&first=1e3&sort=age&order=odd&view=2&by=x&m=y");
  expect(formatMonitorAddress(parsed)).toBe("");
  expect(parseMonitorAddress("n=1&n=2&n=3&n=4&n=5&n=6&n=7").series).toHaveLength(6);
});
