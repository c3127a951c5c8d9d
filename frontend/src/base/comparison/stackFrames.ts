/** Call stacks: the user's own lines first, everything a framework adds folded. The server says which are the user's own. */

/** One frame as the server read it; `line` is null where its text has an unknown form. */
export interface StackFrame {
  file: string;
  line: number | null;
  function: string;
  code: string;
  own: boolean;
}

export interface Frame extends StackFrame {
  /** The frame as it was dumped. */
  text: string;
}

/** A call stack as it travels: the texts as they were dumped, and each as a frame. */
export interface CallStack {
  texts: readonly string[];
  frames: readonly StackFrame[];
}

export interface FoldedStack {
  /** Frames of the user's code, innermost first. */
  user: Frame[];
  /** All frames in the order they were dumped. */
  all: Frame[];
  /** How many frames are folded away. */
  folded: number;
}

export function foldStack({ texts, frames }: CallStack): FoldedStack {
  const all = frames.map((frame, place) => ({ ...frame, text: texts[place] ?? frame.file }));
  const user = all.filter((frame) => frame.own);
  return { user, all, folded: all.length - user.length };
}

/** The frame of the line that made a call, which the server names: neither torch's nor a framework's. */
export function callSite(frames: readonly StackFrame[], calledAt: string): StackFrame | undefined {
  return frames.find((frame) => frame.line !== null && calledAt.startsWith(`${frame.file}:${frame.line} in `));
}

/** Texts of frames that the other side does not have; machine paths may differ, so only the last two path parts count. */
export function changedFrames(mine: readonly Frame[], other: readonly Frame[]): Set<Frame> {
  const known = new Set(other.map(identity));
  return new Set(mine.filter((frame) => !known.has(identity(frame))));
}

function identity(frame: Frame): string {
  const file = frame.file.split(/[\\/]/).slice(-2).join("/");
  return `${file}|${frame.line}|${frame.function}|${frame.code}`;
}

/** `models.py:39`, the form editors and people understand. */
export function framePlace(frame: StackFrame): string {
  const file = frame.file.split(/[\\/]/).at(-1) ?? frame.file;
  return frame.line === null ? file : `${file}:${frame.line}`;
}
