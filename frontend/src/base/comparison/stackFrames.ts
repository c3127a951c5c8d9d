/** Call stacks: the user's own lines first, everything a framework adds folded. */

export interface Frame {
  text: string;
  file: string;
  line: number | null;
  name: string;
  code: string;
  framework: boolean;
}

const FRAMEWORK = /site-packages|dist-packages|\/lib\/python|\\lib\\python|<frozen /i;
const SHAPE = /^\s*File\s+"?(.+?)"?,\s+line\s+(\d+)(?:,\s+in\s+([^\n]*?))?,?\s*(?:\n([\s\S]*))?$/;

/** Understands `File PATH, line N, in NAME, \n CODE` and Python's own `File "PATH", line N, in NAME`. */
export function parseFrame(text: string): Frame {
  const match = SHAPE.exec(text);
  const framework = FRAMEWORK.test(match?.[1] ?? text);
  if (!match) return { text, file: text.trim(), line: null, name: "", code: "", framework };
  return {
    text,
    file: (match[1] ?? "").trim(),
    line: Number(match[2]),
    name: (match[3] ?? "").trim(),
    code: (match[4] ?? "").trim(),
    framework,
  };
}

export interface FoldedStack {
  /** Frames of the user's code, innermost first. */
  user: Frame[];
  /** All frames in the order they were dumped. */
  all: Frame[];
  /** How many frames are folded away. */
  folded: number;
}

export function foldStack(frames: readonly string[]): FoldedStack {
  const all = frames.map(parseFrame);
  const user = all.filter((frame) => !frame.framework);
  return { user, all, folded: all.length - user.length };
}

/** Texts of frames that the other side does not have; machine paths may differ, so only the last two path parts count. */
export function changedFrames(mine: readonly Frame[], other: readonly Frame[]): Set<Frame> {
  const known = new Set(other.map(identity));
  return new Set(mine.filter((frame) => !known.has(identity(frame))));
}

function identity(frame: Frame): string {
  const file = frame.file.split(/[\\/]/).slice(-2).join("/");
  return `${file}|${frame.line}|${frame.name}|${frame.code}`;
}

/** `models.py:39`, the form editors and people understand. */
export function framePlace(frame: Frame): string {
  const file = frame.file.split(/[\\/]/).at(-1) ?? frame.file;
  return frame.line === null ? file : `${file}:${frame.line}`;
}
