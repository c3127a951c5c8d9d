import { expect, test } from "vitest";
import { joinPath, lastPart } from "../../../src/base/text/serverPaths";

test("an entry lies below its folder, and a root stands for itself", () => {
  expect(joinPath("/data/dumps", "run 1")).toBe("/data/dumps/run 1");
  expect(joinPath("/", "data")).toBe("/data");
  expect(joinPath("C:\\dumps", "run")).toBe("C:\\dumps\\run");
  expect(joinPath(null, "/data")).toBe("/data");
});

test("the last part names a path", () => {
  expect(lastPart("/data/run/")).toBe("run");
  expect(lastPart("C:\\dumps\\run")).toBe("run");
});
