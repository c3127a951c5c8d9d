/**
 * The browser's address as a store: one mount prefix, one path, one query string.
 *
 * In a file the path never changes, and the query string stands behind "#": a file from a disk has no other part to change.
 */
import { IN_FILE } from "../inFile";

export interface PageLocation {
  /** Path below the mount point, without a leading slash: "", "dumps/3", "comparisons/7". */
  path: string;
  /** Query string without "?", exactly as the browser holds it. */
  search: string;
}

let prefix = "/";
const listeners = new Set<() => void>();
let current: PageLocation = { path: "", search: "" };

/** The page stands in a file that shows this path alone. */
export function startFileLocation(path: string): void {
  current = { path, search: "" };
  window.addEventListener("popstate", refresh);
  current = read();
}

/** Reads the mount point from <base> and removes the element, so that "#" references inside SVG keep working. */
export function startLocation(): void {
  prefix = new URL(".", document.baseURI).pathname;
  document.querySelector("base")?.remove();
  window.addEventListener("popstate", refresh);
  current = read();
}

export function mountPrefix(): string {
  return prefix;
}

export function getLocation(): PageLocation {
  return current;
}

export function subscribeLocation(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function hrefOf(path: string, search = ""): string {
  if (IN_FILE) return `#${search}`;
  return `${prefix}${path}${search ? `?${search}` : ""}`;
}

export function navigate(path: string, search = "", replace = false): void {
  const href = hrefOf(path, search);
  if (href === (IN_FILE ? window.location.hash : window.location.pathname + window.location.search)) return;
  if (replace) window.history.replaceState(null, "", href);
  else window.history.pushState(null, "", href);
  refresh();
}

function refresh(): void {
  const next = read();
  if (next.path === current.path && next.search === current.search) return;
  current = next;
  for (const listener of listeners) listener();
}

function read(): PageLocation {
  if (IN_FILE) {
    const hash = window.location.hash.replace(/^#/, "");
    return { path: current.path, search: hash === "" || hash.includes("=") ? hash : current.search }; // else a place on the page
  }
  const full = window.location.pathname;
  const path = full.startsWith(prefix) ? full.slice(prefix.length) : full.slice(1);
  return { path: path.replace(/\/+$/, ""), search: window.location.search.replace(/^\?/, "") };
}
