import { type ReactNode, useState } from "react";
import { type CallStack, changedFrames, type Frame, foldStack, framePlace } from "../../base/comparison/stackFrames";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../basic/CopyButton";
import classes from "./Stack.module.css";

/** Frames shown before anything is unfolded, where there is room. */
const BRIEF = 3;

interface StackProps {
  /** Title, drawn before the first label. */
  heading?: string;
  label: string;
  of: CallStack;
  /** Stack of the other side; frames it does not have are marked. */
  other?: CallStack;
  /** Shows only "the same" while the user's lines equal the other side's. */
  brief?: boolean;
  /** Takes one line with one frame before anything is unfolded, as the room is needed for its source. */
  tight?: boolean;
  /** Stands at the end of the first line. */
  aside?: ReactNode;
  missing: string;
}

/** One side's call stack: first user frame on top, framework frames folded. */
export function Stack({ heading, label, of, other, brief = false, tight = false, aside, missing }: StackProps) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const stack = foldStack(of);
  const rival = foldStack(other ?? { texts: [], frames: [] });
  const changed = rival.all.length > 0 ? changedFrames(stack.user, rival.user) : new Set<Frame>();
  const first = (stack.user.length > 0 ? stack.user : stack.all).slice(0, tight ? 1 : BRIEF);
  const same = brief && rival.user.length > 0 && stack.user.length > 0 && !first.some((frame) => changed.has(frame));
  const shown = open ? stack.all : same ? [] : first;
  const hidden = stack.all.length - shown.length;
  const title = heading && <h3 className={classes.title}>{heading}</h3>;
  if (of.texts.length === 0) {
    return (
      <div className={classes.head} data-testid={`stack-${label}`}>
        {title}
        <span className={classes.side}>{label}</span>
        <span className="dim">{missing}</span>
      </div>
    );
  }
  return (
    <div className={classes.stack} data-tight={(tight && !open) || undefined} data-testid={`stack-${label}`}>
      <div className={classes.head}>
        {title}
        <span className={classes.side}>{label}</span>
        {same && !open && (
          <span className="dim">{t(changed.size === 0 ? "evidence.stackSame" : "evidence.stackSameHere")}</span>
        )}
        {(open ? stack.all.length > first.length : hidden > 0) && (
          <button
            type="button"
            className={`plain ${classes.fold}`}
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            data-screen
          >
            {open
              ? `▾ ${t("evidence.framesHide")}`
              : `▸ ${t(tight ? "evidence.framesMore" : "evidence.frames", { hidden, framework: stack.folded })}`}
          </button>
        )}
        {aside}
        <span className={classes.copy}>
          <CopyButton text={of.texts.join("\n")} label={`${t("evidence.copyStack")} (${label})`} />
        </span>
      </div>
      <ol className={classes.frames} data-open={open || undefined}>
        {shown.map((frame, index) => (
          <li
            // biome-ignore lint/suspicious/noArrayIndexKey: a recursive call repeats its frame
            key={index}
            className={classes.frame}
            data-framework={!frame.own || undefined}
            data-changed={changed.has(frame) || undefined}
            title={frame.text}
          >
            <span className={classes.place}>
              <bdi className={classes.file}>{framePlace(frame)}</bdi>
              {frame.function && <span className="dim"> {frame.function}</span>}
            </span>
            {frame.code && <code className={classes.code}>{frame.code}</code>}
            {changed.has(frame) && <span className={classes.changed}>{t("evidence.changed")}</span>}
            {open && <span className={classes.path}>{frame.file}</span>}
          </li>
        ))}
      </ol>
    </div>
  );
}
