import { describe, expect, it } from "vitest";
import { isPath, sidesOf } from "../../../src/base/comparison/guessSides";

describe("the sides of two dropped dumps", () => {
  it("are told from their names, in whatever order they come", () => {
    expect(sidesOf("golden", "target_fault")).toEqual(["golden", "target"]);
    expect(sidesOf("target_fault", "golden")).toEqual(["target", "golden"]);
    expect(sidesOf("dump_gpu", "dump_npu")).toEqual(["golden", "target"]);
    expect(sidesOf("stat_fault", "stat_golden")).toEqual(["target", "golden"]);
  });

  it("follow the order where the names do not tell", () => {
    expect(sidesOf("run1", "run2")).toEqual(["target", "golden"]);
    expect(sidesOf("npu_a", "npu_b")).toEqual(["target", "golden"]);
  });
});

describe("what is typed where a dump is picked", () => {
  it("is a path where it begins like one", () => {
    for (const text of ["/data/run", " ~/run", "C:\\run", "D:/run", "\\\\host\\run"]) expect(isPath(text)).toBe(true);
    for (const text of ["run", "a/b", "", "c:"]) expect(isPath(text)).toBe(false);
  });
});
