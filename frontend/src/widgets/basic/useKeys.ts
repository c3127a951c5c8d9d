import { useEffect, useRef } from "react";
import {
  type Action,
  isTyping,
  keyAction,
  keyOf,
  LISTED,
  type PanelKey,
  pressedKey,
  shiftedDigit,
} from "../../base/address/keys";
import { holdKey } from "../late/heldKeys";
import { notePress } from "../late/rest";

/** Escape closes these before anything else; while one is open, no other key acts. */
const OVERLAYS = "[role=dialog][aria-modal=true], [role=menu]";

type Handlers = Partial<Record<Action, () => void>>;

/** A key of a panel and what it does. */
export interface PanelCommand extends PanelKey {
  run: () => void;
}

interface Bound {
  handlers: Handlers;
  panels: readonly PanelCommand[];
  onDigit?: ((digit: number) => void) | undefined;
}

const NO_PANELS: readonly PanelCommand[] = [];

const screens = new Set<{ readonly current: Bound }>();

/** Keys of the panels on the screen as it is. */
export function boundPanels(): PanelKey[] {
  return [...screens].flatMap(({ current }) => current.panels);
}

/** What the keys can do on the screen as it is, in the order of the keys; plots come last. */
export function possibleCommands(): PanelKey[] {
  const possible = new Set([...screens].flatMap(({ current }) => Object.keys(current.handlers)));
  const actions = LISTED.filter((action) => possible.has(action)).map((id) => ({ id, key: keyOf(id) }));
  const isPlot = ({ id }: PanelKey) => id.startsWith("plot");
  return [...actions.filter((one) => !isPlot(one)), ...boundPanels(), ...actions.filter(isPlot)];
}

/** Does what the key of a command would do. */
export function runCommand(id: string): void {
  for (const { current } of screens) {
    current.handlers[id as Action]?.();
    current.panels.find((panel) => panel.id === id)?.run();
  }
}

/** The overlay that Escape closes: while it goes, the next key is for the screen already. */
let leaving: Element | null = null;
/** Milliseconds after which an overlay that is still there has not been closed by that Escape. */
const LEAVING = 150;
/** The last key, and whether an overlay was open when it was pressed: by the time it gets to the screen, it may have closed it. */
let last: { event: KeyboardEvent; covered: boolean } | null = null;

/** Looks at each key before dialogs and menus do. Call it before anything is drawn: listeners are called in their order. */
export function watchKeys(): void {
  window.addEventListener("keydown", look, { capture: true });
}

function isBound(event: KeyboardEvent): boolean {
  const action = keyAction(event, false);
  return [...screens].some(({ current: { handlers, panels } }) =>
    action ? handlers[action] !== undefined : panels.some(({ key }) => key === event.key),
  );
}

function look(event: KeyboardEvent): void {
  // A plot that is asked for is the answer to its key: it waits for no rest.
  const ofPlot = shiftedDigit(event) !== null || keyAction(event, false)?.startsWith("plot");
  if (!ofPlot) notePress(event.timeStamp);
  if (holdKey(event, isBound(event))) return;
  const open = [...document.querySelectorAll(OVERLAYS)].filter((overlay) => overlay !== leaving);
  last = { event, covered: open.length > 0 };
  const top = open.at(-1);
  if (event.key !== "Escape" || !top) return;
  leaving = top;
  setTimeout(() => {
    if (leaving === top) leaving = null;
  }, LEAVING);
}

/** Calls the handler of a pressed key, unless text is being typed or a dialog or menu is open. onDigit: for Shift and a digit */
export function useKeys(
  handlers: Handlers,
  panels: readonly PanelCommand[] = NO_PANELS,
  onDigit?: (digit: number) => void,
): void {
  const latest = useRef<Bound>({ handlers, panels, onDigit });
  latest.current = { handlers, panels, onDigit };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      const target = event.target instanceof HTMLElement ? event.target : null;
      if (event.key === "Escape" && target && isTyping(target)) {
        // A search field would empty itself; leaving it must not change the filter.
        event.preventDefault();
        target.blur();
        return;
      }
      const typing = isTyping(target);
      const key = pressedKey(event, typing);
      if (key === null || (last?.event === event && last.covered)) return;
      const action = keyAction(event, typing);
      const { current } = latest;
      const digit = shiftedDigit(event);
      const { onDigit } = current;
      const run =
        digit !== null && onDigit
          ? () => onDigit(digit)
          : action
            ? current.handlers[action]
            : current.panels.find((panel) => panel.key === key)?.run;
      if (!run) return;
      event.preventDefault();
      run();
    };
    window.addEventListener("keydown", press);
    screens.add(latest);
    return () => {
      window.removeEventListener("keydown", press);
      screens.delete(latest);
    };
  }, []);
}
