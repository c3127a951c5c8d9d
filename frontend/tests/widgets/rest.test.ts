import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { atRest, notePress, untilReading, untilRest } from "../../src/widgets/late/rest";

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
  vi.advanceTimersByTime(10_000);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function pressAfter(milliseconds: number): void {
  vi.advanceTimersByTime(milliseconds);
  notePress(performance.now());
}

test("the call of a key after a pause is read at once, and its plot is drawn when no other key came", () => {
  pressAfter(1000);
  expect(untilReading()).toBe(0);
  expect(untilRest()).toBe(130);
});

test("calls that a walk passes are read when the keys rest", () => {
  pressAfter(1000);
  pressAfter(80);
  expect(untilReading()).toBe(130);
});

test("a walk whose next key comes before its call could show reads none, until it ends", () => {
  pressAfter(1000);
  pressAfter(160);
  expect(untilReading()).toBe(200);
  vi.advanceTimersByTime(160);
  expect(untilReading()).toBe(40);
});

test("who walks slowly is waited for longer, as the next key is to find no plot being drawn", () => {
  pressAfter(1000);
  pressAfter(200);
  expect(untilReading()).toBe(130);
  expect(untilRest()).toBe(300);
});

test("what waits for a rest runs behind the last key, or not at all when it is called off", () => {
  pressAfter(1000);
  const run = vi.fn();
  const never = vi.fn();
  atRest(run);
  atRest(never)();
  pressAfter(100);
  vi.advanceTimersByTime(140);
  expect(run).not.toHaveBeenCalled();
  vi.advanceTimersByTime(20);
  expect(run).toHaveBeenCalledOnce();
  expect(never).not.toHaveBeenCalled();
});
