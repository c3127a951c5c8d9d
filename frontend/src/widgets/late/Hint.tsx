import {
  cloneElement,
  type HTMLAttributes,
  type ReactElement,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { createPortal } from "react-dom";
import classes from "./Hint.module.css";

const DELAY_MS = 350;
/** Time to move the pointer from the word to its hint. */
const LEAVING_MS = 120;
const GAP = 6;

interface HintProps {
  label: string;
  /** Shown without hover or focus. */
  shown?: boolean;
  /** One element that can have the focus, or that only a pointer finds. */
  children: ReactElement<HTMLAttributes<HTMLElement>>;
}

/**
 * Words that come beside an element on hover and on focus, and that screen readers get as its description. Mantine's tooltip does the
 * same with a library for floating elements, which is as large as the whole answer.
 */
export function Hint({ label, shown = false, children }: HintProps) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const timer = useRef(0);
  const root = useRef<HTMLSpanElement>(null);
  const [anchor, setAnchor] = useState<Element | null>(null);

  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (shown) setAnchor(root.current?.firstElementChild ?? null);
    else setAnchor(null);
  }, [shown]);
  useLayoutEffect(() => {
    if (anchor && box.current) place(box.current, anchor.getBoundingClientRect());
  }, [anchor]);

  const change = (to: Element | null, after: number) => {
    clearTimeout(timer.current);
    if (!shown) timer.current = window.setTimeout(() => setAnchor(to), after);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the element inside has the focus, and its events come up here
    <span
      ref={root}
      className={classes.anchor}
      onPointerEnter={(event) =>
        event.pointerType !== "touch" && change(event.currentTarget.firstElementChild, DELAY_MS)
      }
      onPointerLeave={() => change(null, LEAVING_MS)}
      onFocus={(event) => event.target.matches(":focus-visible") && change(event.target, 0)}
      onBlur={() => change(null, 0)}
      onKeyDown={(event) => event.key === "Escape" && change(null, 0)}
      onClick={() => change(null, 0)}
    >
      {cloneElement(children, { "aria-describedby": id })}
      <span id={id} hidden>
        {label}
      </span>
      {anchor &&
        createPortal(
          <div
            ref={box}
            role="tooltip"
            className={classes.hint}
            onPointerEnter={() => clearTimeout(timer.current)}
            onPointerLeave={() => change(null, LEAVING_MS)}
          >
            {label}
          </div>,
          document.body,
        )}
    </span>
  );
}

/** Below the element where there is room, else above it; never beyond the window. */
function place(box: HTMLElement, at: DOMRect): void {
  const { width, height } = box.getBoundingClientRect();
  const below = at.bottom + GAP + height <= window.innerHeight;
  const left = Math.max(8, Math.min(at.left + at.width / 2 - width / 2, window.innerWidth - width - 8));
  box.style.left = `${left}px`;
  box.style.top = `${below ? at.bottom + GAP : Math.max(8, at.top - GAP - height)}px`;
}
