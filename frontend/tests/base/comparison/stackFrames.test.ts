import { describe, expect, test } from "vitest";
import { changedFrames, foldStack, framePlace, parseFrame } from "../../../src/base/comparison/stackFrames";

const TORCH =
  "File /usr/lib/python3.11/site-packages/torch/nn/modules/module.py, line 1884, in _call_impl, \n return inner()";
const USER = "File /home/user/train/models.py, line 39, in forward, \n x = s.tok(ids) + s.pos(torch.arange(T))";
const OUTER = "File /home/user/train/run.py, line 7, in <module>, \n main()";

describe("a frame", () => {
  test("is taken apart into place, name and code", () => {
    expect(parseFrame(USER)).toMatchObject({
      file: "/home/user/train/models.py",
      line: 39,
      name: "forward",
      code: "x = s.tok(ids) + s.pos(torch.arange(T))",
      framework: false,
    });
    expect(framePlace(parseFrame(USER))).toBe("models.py:39");
  });

  test("of Python's own traceback form is understood too", () => {
    expect(parseFrame('File "C:\\run\\a b.py", line 3, in main')).toMatchObject({
      file: "C:\\run\\a b.py",
      line: 3,
      name: "main",
    });
  });

  test("of no known form is kept as it is", () => {
    expect(parseFrame("<something else>")).toMatchObject({ text: "<something else>", line: null, framework: false });
  });

  test.each([
    "/opt/conda/lib/python3.10/site-packages/torch/_ops.py",
    "/usr/lib/python3/dist-packages/x.py",
    "/usr/lib/python3.11/threading.py",
    "<frozen importlib._bootstrap>",
  ])("in %s is a framework's", (file) => {
    expect(parseFrame(`File ${file}, line 1, in f, \n g()`).framework).toBe(true);
  });
});

describe("a stack", () => {
  test("shows the first user frame on top and counts what it folds", () => {
    const stack = foldStack([TORCH, TORCH, USER, TORCH, OUTER]);
    expect(stack.user.map((frame) => frame.line)).toEqual([39, 7]);
    expect(stack.folded).toBe(3);
    expect(stack.all).toHaveLength(5);
  });

  test("without user frames loses nothing", () => {
    expect(foldStack([TORCH])).toMatchObject({ user: [], folded: 1 });
    expect(foldStack([TORCH]).all).toHaveLength(1);
  });

  test("marks frames the other side lacks, whatever folder the code lies in", () => {
    const moved = USER.replace("/home/user", "/data/job7");
    const mine = foldStack([USER, OUTER]).user;
    const changed = changedFrames(mine, foldStack([moved]).user);
    expect([...changed].map((frame) => frame.line)).toEqual([7]);
  });
});
