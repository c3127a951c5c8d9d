import { expect, test } from "vitest";
import { fileName, joinPath } from "../../../src/base/text/serverPaths";

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
