/** The list of calls of a file: searched, filtered and sorted here, for no server does it. */
import { CLASSES, type ClassWord } from "../../base/comparison/verdicts";
import type { FilterCounts, NodeRow, Page } from "../types";
import type { HeldPlace } from "./contents";
import { one, type Query, words } from "./query";

/** What of a search a file cannot answer. */
export class NotAsked extends Error {}

type Test = (row: NodeRow) => boolean;

/** Words a filter shows a call by; a benign one with a No is shown by both. */
function marksOf(row: NodeRow): string[] {
  return row.cls === "benign" && row.verdict === "no" ? [row.cls, "absorbed"] : [row.cls];
}

function chosen(wanted: readonly string[], shown: readonly (string | null)[]): boolean {
  return wanted.length === 0 || shown.some((word) => word !== null && wanted.includes(word));
}

/** Parts of names, `-` before one that must not be there, quotes around one with blanks; other terms need a server. */
export function searchTest(text: string): Test {
  const parts = [...text.matchAll(/(-?)(?:(\w+)([:=<>]))?(?:"([^"]*)"|(\S+))/g)];
  const tests = parts.map(([, minus, term, sign, quoted, plain = ""]): Test => {
    const part = (quoted ?? plain).toLowerCase();
    if (
      (term !== undefined && !(term === "name" && sign === ":")) ||
      (quoted === undefined && /^\/|[:<>=]/.test(plain))
    )
      throw new NotAsked();
    const among = quoted === undefined ? part.split(",") : [part];
    const holds: Test = (row) =>
      [row.name, row.golden_name ?? ""].some((name) => among.some((piece) => name.toLowerCase().includes(piece)));
    return minus ? (row) => !holds(row) : holds;
  });
  return (row) => tests.every((test) => test(row));
}

function searched(place: HeldPlace, query: Query): NodeRow[] {
  const [from, to, api, text] = [one(query, "from"), one(query, "to"), one(query, "api"), one(query, "q") ?? ""];
  const found = searchTest(text);
  return place.calls.filter(
    (row) =>
      (from === null || row.order >= Number(from)) &&
      (to === null || row.order <= Number(to)) &&
      (api === null || row.api === api) &&
      found(row),
  );
}

function severity(row: NodeRow): number {
  return CLASSES.indexOf(row.cls as ClassWord);
}

function large(value: number | string | null): number {
  if (value === null) return -1;
  const number = Number(value);
  return Number.isNaN(number) ? Number.POSITIVE_INFINITY : number;
}

const SORTS: Readonly<Record<string, (one: NodeRow, other: NodeRow) => number>> = {
  "-out_score": (one, other) => large(other.out_score) - large(one.out_score) || one.order - other.order,
  "-class": (one, other) => severity(one) - severity(other) || one.order - other.order,
  name: (one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : one.order - other.order),
};

/** A page of the list, as the server would answer if these were all calls. Throws NotAsked. */
export function listCalls(place: HeldPlace, query: Query): Page<NodeRow> {
  const rows = searched(place, query).filter(
    (row) =>
      chosen(words(query, "class"), marksOf(row)) &&
      chosen(words(query, "verdict"), [row.verdict]) &&
      chosen(words(query, "leftover"), [row.leftover]),
  );
  const sort = SORTS[one(query, "sort") ?? ""];
  if (sort) rows.sort(sort);
  const limit = Number(one(query, "limit") ?? 100);
  const around = one(query, "around");
  const start =
    around === null ? Number(one(query, "at") ?? 0) : Math.max(0, placeOf(place, rows, around) - (limit >> 1));
  const items = rows.slice(start, start + limit);
  return { items, next: start + limit < rows.length ? "next" : null, total: rows.length, start };
}

/** Place of a call among rows, else of the next one in call order. */
function placeOf(place: HeldPlace, rows: readonly NodeRow[], name: string): number {
  const isCall: Test = (row) => row.address === name || row.name === name || row.golden_name === name;
  const here = rows.findIndex(isCall);
  if (here >= 0) return here;
  const order = place.calls.find(isCall)?.order ?? 0;
  const next = rows.findIndex((row) => row.order >= order);
  return next < 0 ? rows.length : next;
}

/** How many calls each word of the filter would show. Throws NotAsked. */
export function countCalls(place: HeldPlace, query: Query): FilterCounts {
  const counts: FilterCounts = { classes: {}, verdicts: {}, leftovers: {}, micros: {} };
  const add = (group: Record<string, number>, word: string) => {
    group[word] = (group[word] ?? 0) + 1;
  };
  for (const cls of [...CLASSES, "absorbed"]) counts.classes[cls] = 0;
  for (const row of searched(place, query)) {
    const marks = marksOf(row);
    const byClass = chosen(words(query, "class"), marks);
    const byVerdict = chosen(words(query, "verdict"), [row.verdict]);
    const byLeftover = chosen(words(query, "leftover"), [row.leftover]);
    if (byVerdict && byLeftover) for (const mark of marks) add(counts.classes, mark);
    if (byClass && byLeftover) add(counts.verdicts, row.verdict);
    if (byClass && byVerdict && row.leftover !== null) add(counts.leftovers, row.leftover);
  }
  return counts;
}
