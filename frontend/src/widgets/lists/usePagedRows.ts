/**
 * A list of any length with rows by position: only the visible pages are loaded, wherever the user jumps.
 * The selected row is searched on the server unless it is loaded already.
 */
import {
  hashKey,
  keepPreviousData,
  type QueryClient,
  queryOptions,
  useQueries,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { PAGE_ROWS } from "../../api/records";
import type { Page } from "../../api/types";

/** Rows loaded beyond the visible ones. */
const AHEAD = 100;
/** Milliseconds of rest before rows are loaded: dragging the scroll bar passes many positions a second. */
const REST = 60;
/** Milliseconds for which invisible rows are kept, and those that are likely to be asked for next. */
const KEPT = 30_000;
const KEPT_AHEAD = 120_000;

/** Where rows come from. `key` holds everything that decides which rows there are. */
export interface Source<R> {
  key: readonly unknown[];
  enabled: boolean;
  /** Rows from a place on; fewer than `limit` where the server cuts the reply or the list ends. */
  at: (place: number, limit: number, signal: AbortSignal) => Promise<Page<R>>;
  /** One row: the named one, or the next where the list does not show it; `start` is its place. */
  around: (name: string, signal: AbortSignal) => Promise<Page<R>>;
  nameOf: (row: R) => string;
}

export interface PagedRows<R> {
  total: number;
  rowAt: (place: number) => R | undefined;
  /** The same, read first where it is not here; undefined outside the list. */
  fetchAt: (place: number) => Promise<R | undefined>;
  /** Has a row come with those around it, so that the list is there at once when it is selected. */
  expect: (name: string) => void;
  /** Sets the visible rows. */
  show: (first: number, last: number) => void;
  /** Place of the selected row, -1 where the list does not show it or while it is looked for. */
  selectedAt: number;
  /** Row to scroll to, with a number that grows with every request to do so. */
  goal: { place: number; turn: number };
  /** Such a request for the selected row, which may be scrolled out of view. */
  lead: () => void;
  problem: Error | null;
  /** The server does not understand what is asked for, such as a search that is still being typed; the list of before stays. */
  refused: Error | null;
  loading: boolean;
  retry: () => void;
}

interface Found {
  place: number;
  /** Whether the row there is the one that was looked for. */
  exact: boolean;
  total: number;
}

interface Selected extends Found {
  list: string;
  name: string;
  turn: number;
}

export function usePagedRows<R>(source: Source<R>, selected: string | null): PagedRows<R> {
  const client = useQueryClient();
  const list = JSON.stringify(source.key);
  const [anchor, setAnchor] = useState<{ list: string; name: string | null }>({ list, name: selected });
  // Another list starts around the selected row.
  const name = anchor.list === list ? anchor.name : selected;
  const found = useQuery({
    ...placeOptions(client, source, name),
    enabled: source.enabled,
    placeholderData: keepPreviousData,
  });
  const fresh = found.isPlaceholderData ? undefined : found.data;
  // The old list stays until the new one is loaded, so nothing flickers.
  const before = useRef(source);
  const shown = fresh ? source : before.current;
  before.current = shown;
  const refused = found.error instanceof ApiError && found.error.status === 400 ? found.error : null;
  const lastTotal = useRef(0);
  if (found.data) lastTotal.current = found.data.total;
  const total = found.data?.total ?? (refused ? lastTotal.current : 0);

  const expect = useCallback(
    (name: string) => void client.prefetchQuery(placeOptions(client, source, name, KEPT_AHEAD)),
    [client, source],
  );

  const [seen, setSeen] = useState<readonly [number, number] | null>(null);
  const rest = useRef<{ timer: ReturnType<typeof setTimeout>; range: readonly [number, number] } | null>(null);
  const show = useCallback((first: number, last: number) => {
    const range = [first, last] as const;
    if (rest.current) rest.current.range = range;
    else {
      const timer = setTimeout(() => {
        setSeen(rest.current?.range ?? null);
        rest.current = null;
      }, REST);
      rest.current = { timer, range };
    }
  }, []);
  useEffect(() => () => clearTimeout(rest.current?.timer), []);

  const around = found.data?.place ?? 0;
  const pages = total > 0 && source.enabled ? pagesIn(seen ?? [around, around], total) : [];
  const { problem } = useQueries({
    queries: pages.map((page) => pageOptions(shown, page)),
    combine: (results) => ({
      problem: results.find((result) => result.error)?.error ?? null,
      drawn: results.map((result) => result.dataUpdatedAt), // rows that come are drawn
    }),
  });

  const pagesHere = new Map<number, readonly R[] | undefined>();
  const rowAt = (place: number): R | undefined => {
    const page = Math.floor(place / PAGE_ROWS);
    if (!pagesHere.has(page)) {
      pagesHere.set(page, client.getQueryData<Rows<R>>(pageOptions(shown, page).queryKey)?.rows);
    }
    return pagesHere.get(page)?.[place - page * PAGE_ROWS];
  };
  const fetchAt = async (place: number): Promise<R | undefined> => {
    if (place < 0 || place >= total) return undefined;
    const page = Math.floor(place / PAGE_ROWS);
    return (await client.fetchQuery(pageOptions(shown, page))).rows[place - page * PAGE_ROWS];
  };

  const [at, setAt] = useState<Selected>({ list: "", name: "", place: -1, exact: false, total: 0, turn: 0 });
  const lead = useCallback(() => setAt((now) => ({ ...now, turn: now.turn + 1 })), []);
  const here = at.list === list && at.name === selected;
  const row = here && at.exact ? rowAt(at.place) : undefined;
  const moved = row !== undefined && shown.nameOf(row) !== selected;
  // While drawing, as an effect would have all that shows the selection drawn twice.
  if (selected !== null && (!here || moved)) {
    const settle = (next: Found) => setAt((now) => ({ ...next, list, name: selected, turn: now.turn + 1 }));
    const place = fresh ? placeAmong(client, shown, selected) : -1;
    if (place >= 0) settle({ place, exact: true, total });
    else if (anchor.list !== list || anchor.name !== selected) setAnchor({ list, name: selected });
    else if (fresh && (!here || fresh.place !== at.place)) settle(fresh);
  }

  return {
    total,
    rowAt,
    fetchAt,
    expect,
    show,
    selectedAt: here && at.exact && !moved ? at.place : -1,
    goal: { place: here ? Math.min(at.place, total - 1) : -1, turn: at.turn },
    lead,
    problem: refused ? null : (found.error ?? problem),
    refused,
    loading: found.isPending || found.isPlaceholderData,
    retry: () => {
      void found.refetch();
      void client.refetchQueries({ queryKey: [...shown.key, "at"], type: "active" });
    },
  };
}

function placeOptions<R>(client: QueryClient, source: Source<R>, name: string | null, gcTime = KEPT) {
  return queryOptions({
    queryKey: [...source.key, "place", name],
    queryFn: ({ signal }) => find(client, source, name, signal, gcTime),
    gcTime,
  });
}

/** The page with a node, loaded before its position is returned, so a list never shows a position without its rows. */
async function find<R>(
  client: QueryClient,
  source: Source<R>,
  name: string | null,
  signal: AbortSignal,
  kept: number,
): Promise<Found> {
  const page = (place: number) => client.fetchQuery(pageOptions(source, Math.floor(place / PAGE_ROWS), kept));
  if (name === null) return { place: 0, exact: false, total: (await page(0)).total };
  try {
    const { items, start, total } = await source.around(name, signal);
    const place = Math.max(0, Math.min(start ?? 0, total - 1));
    if (total > 0) await page(place);
    return { place, exact: items[0] !== undefined && source.nameOf(items[0]) === name, total };
  } catch (problem) {
    // Another step or rank may not have the node: its list starts at the top then.
    if (!(problem instanceof ApiError && problem.status === 404)) throw problem;
    return { place: 0, exact: false, total: (await page(0)).total };
  }
}

interface Rows<R> {
  rows: readonly R[];
  total: number;
}

function pageOptions<R>(source: Source<R>, page: number, gcTime = KEPT) {
  return {
    queryKey: [...source.key, "at", page],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Rows<R>> => {
      const first = page * PAGE_ROWS;
      const rows: R[] = [];
      for (;;) {
        const part = await source.at(first + rows.length, PAGE_ROWS - rows.length, signal);
        rows.push(...part.items);
        const whole = part.next === null || part.items.length === 0 || rows.length >= PAGE_ROWS;
        if (whole) return { rows, total: part.total };
      }
    },
    gcTime,
  };
}

function pagesIn([first, last]: readonly [number, number], total: number): number[] {
  const from = Math.floor(Math.max(0, Math.min(first - AHEAD, total - 1)) / PAGE_ROWS);
  const to = Math.floor(Math.max(0, Math.min(last + AHEAD, total - 1)) / PAGE_ROWS);
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

/** Place of a row among those that are here, -1 where it is not. */
function placeAmong<R>(client: QueryClient, source: Source<R>, name: string): number {
  const queryKey = [...source.key, "at"];
  const own = hashKey(queryKey);
  for (const [key, page] of client.getQueriesData<Rows<R>>({ queryKey })) {
    if (hashKey(key.slice(0, -1)) !== own) continue; // of a list with a filter, which has all that this key has and more
    const index = page?.rows.findIndex((row) => source.nameOf(row) === name) ?? -1;
    if (index >= 0) return Number(key.at(-1)) * PAGE_ROWS + index;
  }
  return -1;
}
