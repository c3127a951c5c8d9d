/**
 * Keys that are pressed before the part of the page is there that they are for: they wait for its script, and act in their order.
 *
 * Once a key waits, or a dialog is on its way, later keys wait behind it: `Ctrl-K` and a name typed at once are one thing to the user.
 */
import { isTyping } from "../../base/address/keys";

type Kind = "part" | "overlay";

const coming: Record<Kind, number> = { part: 0, overlay: 0 };
const held: KeyboardEvent[] = [];
const replayed = new WeakSet<Event>();
/** Milliseconds that an overlay may take to put the focus into its field. */
const SETTLING = 500;
/** Nobody remembers a key that was pressed so many milliseconds ago. */
const OLD = 15_000;

/** A part of the page is on its way; call what it returns when it is drawn, or failed. */
export function expectPart(kind: Kind): () => void {
  coming[kind] += 1;
  let over = false;
  return () => {
    if (over) return;
    over = true;
    coming[kind] -= 1;
    setTimeout(release); // its keys are bound by then
  };
}

/** Before anything else sees the key: whether it was taken, to act later. */
export function holdKey(event: KeyboardEvent): boolean {
  if (replayed.has(event) || !isPlain(event)) return false;
  if (coming.overlay > 0 || held.length > 0) {
    event.preventDefault();
    event.stopImmediatePropagation();
    held.push(event);
    return true;
  }
  // A key that nothing on the page takes is for a part that is still on its way.
  if (coming.part > 0 && !isTyping(asElement(event.target)))
    setTimeout(() => {
      if (!event.defaultPrevented && coming.part > 0) held.push(event);
    });
  return false;
}

function isPlain(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  return event.key.length === 1 || event.key === "Enter" || event.key === "Escape" || event.key.startsWith("Arrow");
}

let settling = false;

/** Lets the keys act that waited, as far as what they are for is there. */
function release(): void {
  while (held.length > 0 && coming.overlay === 0 && !settling) {
    if (isOverlayUnsettled()) {
      settling = true;
      settle(performance.now() + SETTLING);
      return;
    }
    const stroke = held[0] as KeyboardEvent;
    const taken = performance.now() - stroke.timeStamp > OLD || act(stroke);
    if (!taken && coming.part > 0) return;
    held.shift();
  }
}

function act(stroke: KeyboardEvent): boolean {
  const target = document.activeElement ?? document.body;
  const again = new KeyboardEvent("keydown", { key: stroke.key, code: stroke.code, bubbles: true, cancelable: true });
  replayed.add(again);
  if (!target.dispatchEvent(again)) return true;
  if (stroke.key.length > 1 || !isTyping(asElement(target))) return false;
  document.execCommand("insertText", false, stroke.key); // the one way by which React sees it as typed
  return true;
}

/** A dialog is open and has not taken the focus yet. */
function isOverlayUnsettled(): boolean {
  const dialog = document.querySelector("[role=dialog][aria-modal=true]");
  return dialog !== null && !dialog.contains(document.activeElement);
}

function settle(until: number): void {
  if (isOverlayUnsettled() && performance.now() < until) {
    requestAnimationFrame(() => settle(until));
    return;
  }
  settling = false;
  const stroke = held.shift();
  if (stroke) act(stroke);
  release();
}

function asElement(target: EventTarget | null): HTMLElement | null {
  return target instanceof HTMLElement ? target : null;
}
