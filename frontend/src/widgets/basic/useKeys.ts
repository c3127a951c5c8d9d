import { useEffect, useRef } from "react";
import { type Action, isTyping, keyAction, LISTED } from "../../base/address/keys";

/** What is closed by Escape before anything else, and holds every other key too. */
const OVERLAYS = "[role=dialog][aria-modal=true], [role=menu]";

type Handlers = Partial<Record<Action, () => void>>;

const screens = new Set<{ readonly current: Handlers }>();

/** What the keys can do on the screen as it is, in the order of the keys. */
export function possibleActions(): Action[] {
  const possible = new Set([...screens].flatMap(({ current }) => Object.keys(current)));
  return LISTED.filter((action) => possible.has(action));
}

/** Does what the action's key would do. */
export function perform(action: Action): void {
  for (const { current } of screens) current[action]?.();
}

/** Calls the handler of a pressed key, unless text is being typed or a dialog or menu is open. */
export function useKeys(handlers: Handlers): void {
  const latest = useRef(handlers);
  latest.current = handlers;
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
      const action = keyAction(event, isTyping(target));
      if (!action || document.querySelector(OVERLAYS)) return;
      const handler = latest.current[action];
      if (!handler) return;
      event.preventDefault();
      handler();
    };
    window.addEventListener("keydown", press);
    screens.add(latest);
    return () => {
      window.removeEventListener("keydown", press);
      screens.delete(latest);
    };
  }, []);
}
