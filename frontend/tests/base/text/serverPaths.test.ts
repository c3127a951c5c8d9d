import { expect, test } from "vitest";
import { fileName, isResultTable, joinPath } from "../../../src/base/text/serverPaths";

test("an entry lies below its folder, and a root stands for itself", () => {
  expect(joinPath("/data/dumps", "run 1")).toBe("/data/dumps/run 1");
  expect(joinPath("/", "data")).toBe("/data");
  expect(joinPath("C:\\dumps", "run")).toBe("C:\\dumps\\run");
  expect(joinPath(null, "/data")).toBe("/data");
});

test("the last part names a path", () => {
  expect(fileName("/data/run/")).toBe("run");
  expect(fileName("C:\\dumps\\run")).toBe("run");
});

test("a result table is known by the name that its tool gives it", () => {
  expect(isResultTable("/out/compare_result_20240501101530.csv")).toBe(true);
  expect(isResultTable("/out/compare_result_rank0_20240501101530.XLSX")).toBe(true);
  expect(isResultTable("C:\\out\\debug_compare_result.csv")).toBe(true);
  expect(isResultTable("/compare_result/run/dump.json")).toBe(false);
  expect(isResultTable("/out/loss.csv")).toBe(false);
});
