import { expect, test } from "vitest";
import { findConsumer, findProducer } from "../../../src/base/comparison/flowSteps";
import { isBad } from "../../../src/base/comparison/verdicts";

const call = (name: string, cls: string) => ({ address: name, cls });
const hop = (cls: string, rest: Partial<Parameters<typeof findProducer>[0]> = {}) => ({
  node: call("here", cls),
  inputs: [{ producer: null }, { producer: call("before", "exact") }],
  consumers: [{ consumer: call("near", "benign") }, { consumer: call("far", "propagated") }],
  source: null,
  ...rest,
});

test("the way back follows what differs", () => {
  expect(findProducer(hop("propagated", { source: { node: call("cause", "origin") } }), isBad)).toBe("cause");
});

test("the way back ends where the difference begins", () => {
  expect(findProducer(hop("origin"), isBad)).toBeNull();
});

test("the way back from a clean call goes to whoever made its first known input", () => {
  expect(findProducer(hop("exact"), isBad)).toBe("before");
  expect(findProducer(hop("exact", { inputs: [{ producer: null }] }), isBad)).toBeNull();
});

test("the way on prefers a call that differs", () => {
  expect(findConsumer(hop("origin"), isBad)).toBe("far");
  expect(findConsumer(hop("exact", { consumers: [{ consumer: call("near", "exact") }] }), isBad)).toBe("near");
  expect(findConsumer(hop("exact", { consumers: [] }), isBad)).toBeNull();
});
