/** Whether the page is being printed: some parts are drawn otherwise then, and all in light colours. */
import { useSyncExternalStore } from "react";

const SCHEME = "data-mantine-color-scheme";
const watchers = new Set<() => void>();
let printing = false;
/** The colours to go back to. */
let before: string | null = null;

/** Browsers say so by an event, tools by the medium alone. */
export function watchPrinting(): void {
  const medium = window.matchMedia("print");
  window.addEventListener("beforeprint", () => tell(true));
  window.addEventListener("afterprint", () => tell(false));
  medium.addEventListener("change", () => tell(medium.matches));
}

function tell(now: boolean): void {
  if (now === printing) return;
  printing = now;
  const root = document.documentElement;
  if (now) {
    before = root.getAttribute(SCHEME);
    root.setAttribute(SCHEME, "light");
  } else if (before !== null) root.setAttribute(SCHEME, before);
  for (const watcher of watchers) watcher();
}

export function usePrinting(): boolean {
  return useSyncExternalStore(subscribe, () => printing);
}

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}
