import { describe, expect, test } from "vitest";
import { callSite, changedFrames, foldStack, framePlace } from "../../../src/base/comparison/stackFrames";

const TORCH = {
  file: "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py",
  line: 1884,
  function: "_call_impl",
  code: "return inner()",
  own: false,
};
const USER = { file: "/home/user/train/models.py", line: 39, function: "forward", code: "x = s.tok(ids)", own: true };
const OUTER = { file: "/home/user/train/run.py", line: 7, function: "<module>", code: "main()", own: true };
const UNKNOWN = { file: "<something else>", line: null, function: "", code: "", own: true };

function stackOf(...frames: (typeof USER | typeof UNKNOWN)[]) {
  return { texts: frames.map(({ file }) => `File ${file}`), frames };
}

describe("a frame", () => {
  test("is placed by the last part of its file", () => {
    const [frame] = foldStack(stackOf(USER)).all;
    expect(frame && framePlace(frame)).toBe("models.py:39");
    expect(frame?.text).toBe("File /home/user/train/models.py");
  });

  test("of no known form is kept as it is", () => {
    const [frame] = foldStack(stackOf(UNKNOWN)).user;
    expect(frame && framePlace(frame)).toBe("<something else>");
  });
});

describe("a stack", () => {
  test("shows the first user frame on top and counts what it folds", () => {
    const stack = foldStack(stackOf(TORCH, TORCH, USER, TORCH, OUTER));
    expect(stack.user.map((frame) => frame.line)).toEqual([39, 7]);
    expect(stack.folded).toBe(3);
    expect(stack.all).toHaveLength(5);
  });

  test("names the line that the server says made the call", () => {
    const at = "/home/user/train/models.py:39 in forward: x = s.tok(ids)";
    expect(callSite([TORCH, UNKNOWN, USER, OUTER], at)?.line).toBe(39);
    expect(callSite([TORCH], "")).toBeUndefined();
  });

  test("without user frames loses nothing", () => {
    expect(foldStack(stackOf(TORCH))).toMatchObject({ user: [], folded: 1 });
    expect(foldStack(stackOf(TORCH)).all).toHaveLength(1);
  });

  test("marks frames the other side lacks, whatever folder the code lies in", () => {
    const moved = { ...USER, file: USER.file.replace("/home/user", "/data/job7") };
    const mine = foldStack(stackOf(USER, OUTER)).user;
    const changed = changedFrames(mine, foldStack(stackOf(moved)).user);
    expect([...changed].map((frame) => frame.line)).toEqual([7]);
  });
});
