/** Filters with a name, kept in this browser: what they show stands in the address, as with every filter. */

export interface SavedFilter {
  name: string;
  /** As in the address: `f` and `q`. */
  filter: string;
  query: string;
}

type Store = Pick<Storage, "getItem" | "setItem">;

const KEY = "dumpscope.filters";
/** More would be no list to choose from. */
export const MOST_SAVED = 20;
export const LONGEST_NAME = 60;

const listeners = new Set<() => void>();
let last: { text: string | null; filters: readonly SavedFilter[] } = { text: null, filters: [] };

/** The same list until it changes; what is damaged in the store is left out. */
export function savedFilters(store: Store): readonly SavedFilter[] {
  const text = read(store);
  if (text !== last.text) last = { text, filters: parse(text) };
  return last.filters;
}

/** A filter of the same name is replaced; past the limit the oldest goes. */
export function saveFilter(store: Store, saved: SavedFilter): void {
  const name = saved.name.trim().slice(0, LONGEST_NAME);
  if (name === "") return;
  const others = savedFilters(store).filter((one) => one.name !== name);
  write(store, [...others, { ...saved, name }].slice(-MOST_SAVED));
}

export function removeFilter(store: Store, name: string): void {
  write(
    store,
    savedFilters(store).filter((one) => one.name !== name),
  );
}

export function watchFilters(tell: () => void): () => void {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

function read(store: Store): string | null {
  try {
    return store.getItem(KEY);
  } catch {
    return null;
  }
}

function write(store: Store, filters: readonly SavedFilter[]): void {
  try {
    store.setItem(KEY, JSON.stringify(filters));
  } catch {
    // Storage is off or full: nothing is kept.
  }
  for (const tell of listeners) tell();
}

function parse(text: string | null): readonly SavedFilter[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter(isSaved).slice(-MOST_SAVED) : [];
  } catch {
    return [];
  }
}

function isSaved(one: unknown): one is SavedFilter {
  if (typeof one !== "object" || one === null) return false;
  const { name, filter, query } = one as Record<string, unknown>;
  return typeof name === "string" && name !== "" && typeof filter === "string" && typeof query === "string";
}
