import { describe, expect, test } from "vitest";
import {
  type Address,
  applyChange,
  formatAddress,
  formatFilter,
  NO_FILTER,
  parseAddress,
  parseFilter,
} from "../../../src/base/address/address";

const NAMES = [
  "Functional.softmax.1.forward",
  "Module.模型.层.0.forward.0",
  "a#b?c%d+e&f=g h",
  '<img src=x onerror="alert(1)">',
  "quote'\"\\/slash/../x",
  "%25%2F",
  "x".repeat(300),
  "🙂.forward",
];

const FULL: Address = {
  step: 3,
  rank: 12,
  node: "Functional.softmax.1.forward",
  tab: "order",
  log: false,
  item: "output.0",
  axes: [2, 0],
  at: [3, 5, 7],
  rms: true,
  measure: "max",
  filter: {
    classes: ["origin", "amplifier"],
    verdicts: ["no", "n/a"],
    leftovers: ["fused"],
    api: "Functional.soft,max:x",
    range: [10, 400],
  },
  query: "soft max",
  sort: "-out_score",
  numbers: "-norm",
  ecdf: true,
  stage: "path",
  hops: 3,
  suspects: true,
  dialog: "match",
};

describe("the address", () => {
  test("gives back every part it was made from", () => {
    expect(parseAddress(formatAddress(FULL))).toEqual(FULL);
  });

  test.each(NAMES)("keeps the node name %s whole", (name) => {
    const address = { ...FULL, node: name, query: name, filter: { ...FULL.filter, api: name } };
    expect(parseAddress(formatAddress(address))).toEqual(address);
  });

  test("is empty for a fresh screen", () => {
    expect(formatAddress(parseAddress(""))).toBe("");
  });

  test("keeps step 0 and rank 0 apart from no choice", () => {
    expect(parseAddress("s=0&r=0")).toMatchObject({ step: 0, rank: 0 });
    expect(parseAddress("")).toMatchObject({ step: null, rank: null });
  });

  test("keeps the scale that suits a plot apart from one that was chosen", () => {
    expect(parseAddress("").log).toBeNull();
    expect(parseAddress("log=1").log).toBe(true);
    expect(formatAddress({ ...FULL, log: null })).not.toContain("log=");
  });

  test("forgets tensor, dimensions and element with the node, not with step or rank", () => {
    expect(applyChange(FULL, { step: 4, rank: 1 })).toMatchObject({ item: "output.0", axes: [2, 0], at: [3, 5, 7] });
    expect(applyChange(FULL, { node: "other" })).toMatchObject({ item: null, axes: null, at: null, tab: "order" });
    expect(applyChange(FULL, { item: "input.0" })).toMatchObject({ item: "input.0", axes: null, at: null });
    expect(applyChange({ ...FULL, node: null }, { node: "first" })).toMatchObject({ at: [3, 5, 7] });
  });

  test.each(["1,,2", "-1", "a", "1,2,3", "9".repeat(16)])("takes %s for no dimensions", (text) => {
    expect(parseAddress(`ax=${text}`).axes).toBeNull();
  });

  test("survives nonsense", () => {
    const address = parseAddress("s=-1&r=x&tab=nope&sort=evil&f=class:wat,verdict:,api:%25E0%25A4%25A,order:5-,:,,&n=");
    expect(address).toMatchObject({ step: null, rank: null, node: null, tab: null, sort: "order" });
    expect(address.filter).toEqual({ ...NO_FILTER, api: "%E0%A4%A" });
  });

  test("names a class once however often it is listed", () => {
    expect(parseFilter("class:origin,class:origin").classes).toEqual(["origin"]);
  });

  test("writes filters the way docs show them", () => {
    expect(
      formatFilter({ classes: ["origin"], verdicts: ["no"], leftovers: ["inserted"], api: null, range: [3, 9] }),
    ).toBe("class:origin,verdict:no,left:inserted,order:3-9");
  });
});
