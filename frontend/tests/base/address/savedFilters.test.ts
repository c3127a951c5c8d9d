import { expect, test, vi } from "vitest";
import {
  MOST_SAVED,
  removeFilter,
  savedFilters,
  saveFilter,
  watchFilters,
} from "../../../src/base/address/savedFilters";

function memory(text: string | null = null) {
  let kept = text;
  return { getItem: () => kept, setItem: (_key: string, value: string) => (kept = value) };
}

test("a filter is kept under its name, replaced by another of that name, and forgotten", () => {
  const store = memory();
  saveFilter(store, { name: " attention ", filter: "class:origin", query: "attn" });
  saveFilter(store, { name: "other", filter: "", query: "x" });
  saveFilter(store, { name: "attention", filter: "", query: "/attn/" });
  expect(savedFilters(store).map(({ name, query }) => [name, query])).toEqual([
    ["other", "x"],
    ["attention", "/attn/"],
  ]);
  removeFilter(store, "other");
  expect(savedFilters(store).map(({ name }) => name)).toEqual(["attention"]);
});

test("a filter without a name is not kept, and of too many the oldest goes", () => {
  const store = memory();
  saveFilter(store, { name: "  ", filter: "", query: "x" });
  for (let at = 0; at <= MOST_SAVED; at += 1) saveFilter(store, { name: `n${at}`, filter: "", query: "x" });
  const names = savedFilters(store).map(({ name }) => name);
  expect(names).toHaveLength(MOST_SAVED);
  expect(names[0]).toBe("n1");
});

test("the list stays the same until it changes, and who watches is told", () => {
  const store = memory();
  const told = vi.fn();
  const leave = watchFilters(told);
  expect(savedFilters(store)).toBe(savedFilters(store));
  saveFilter(store, { name: "a", filter: "", query: "x" });
  expect(told).toHaveBeenCalledTimes(1);
  leave();
});

test("what is damaged in the store is left out", () => {
  expect(savedFilters(memory("{"))).toEqual([]);
  expect(savedFilters(memory('{"a": 1}'))).toEqual([]);
  const one = { name: "a", filter: "f", query: "q" };
  expect(savedFilters(memory(JSON.stringify([one, null, 3, { name: 1 }, { name: "b" }])))).toEqual([one]);
});

test("a store that is off keeps nothing and breaks nothing", () => {
  const off = {
    getItem: () => {
      throw new Error("off");
    },
    setItem: () => {
      throw new Error("off");
    },
  };
  saveFilter(off, { name: "a", filter: "", query: "x" });
  expect(savedFilters(off)).toEqual([]);
});
