import { describe, expect, it } from "vitest";
import { guessSides } from "../../../src/base/comparison/sides";
import { isPath } from "../../../src/base/text/serverPaths";

describe("the sides of two dropped dumps", () => {
  it("are told from their names, in whatever order they come", () => {
    expect(guessSides("golden", "target_fault")).toEqual(["golden", "target"]);
    expect(guessSides("target_fault", "golden")).toEqual(["target", "golden"]);
    expect(guessSides("dump_gpu", "dump_npu")).toEqual(["golden", "target"]);
    expect(guessSides("stat_fault", "stat_golden")).toEqual(["target", "golden"]);
  });

  it("follow the order where the names do not tell", () => {
    expect(guessSides("run1", "run2")).toEqual(["target", "golden"]);
    expect(guessSides("npu_a", "npu_b")).toEqual(["target", "golden"]);
  });
});

describe("what is typed where a dump is picked", () => {
  it("is a path where it begins like one", () => {
    for (const text of ["/data/run", " ~/run", "C:\\run", "D:/run", "\\\\host\\run"]) expect(isPath(text)).toBe(true);
    for (const text of ["run", "a/b", "", "c:"]) expect(isPath(text)).toBe(false);
  });
});
