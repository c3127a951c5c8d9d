/** Answers what the page asks from the file that it stands in, as a server would. */
import type { Reach, Strip, TreeLevels } from "../types";
import { countCalls, listCalls, NotAsked } from "./calls";
import { contents, type HeldPlace } from "./contents";
import { keyOf, one, type Query, words } from "./query";
import { narrowRuns, narrowStrip } from "./strip";
import { branchLevels, levelsTo, wayTo } from "./trees";

/** Codes of what a file cannot show; screens say what to do instead. */
export const NOT_IN_FILE = "not_in_file";
export const NOT_SEARCHED = "not_searched";

interface Answer {
  status: number;
  body: unknown;
}

const COMPARISON = "/api/comparisons/{comparison_id}";

/** path: as in the OpenAPI document; filled: with its parameters in their places */
export function answerFromFile(method: string, path: string, filled: string, query: Query): Answer {
  if (method !== "GET") return absent();
  try {
    return found(computed(path, filled, query) ?? stored(filled, query) ?? unmarked(path, filled, query));
  } catch (problem) {
    if (problem instanceof NotAsked) return { status: 400, body: { error: NOT_SEARCHED, detail: NOT_SEARCHED } };
    throw problem;
  }
}

function absent(): Answer {
  return { status: 404, body: { error: NOT_IN_FILE, detail: NOT_IN_FILE } };
}

function found(answer: Answer | null): Answer {
  return answer ?? absent();
}

function stored(filled: string, query: Query): Answer | null {
  const kept = contents().replies[keyOf(filled, query)];
  return kept ? { status: kept[0], body: kept[1] } : null;
}

/** A plot of all calls, without a mark at the one that is selected. */
function unmarked(path: string, filled: string, query: Query): Answer | null {
  return path === `${COMPARISON}/figures/{name}` ? stored(filled, { ...query, node: null }) : null;
}

/** What a file answers from its lists; null where it has the very reply, or nothing. */
function computed(path: string, filled: string, query: Query): Answer | null {
  if (!path.startsWith(COMPARISON)) return null;
  const map = MAPS.find((name) => path === `${COMPARISON}/${name}`);
  if (map) return searchedMap(filled, query);
  const place = contents().places.find(
    (each) => String(each.step) === one(query, "step") && String(each.rank) === one(query, "rank"),
  );
  if (!place) return null;
  switch (path.slice(COMPARISON.length)) {
    case "/nodes":
      return ok(listCalls(place, query));
    case "/counts":
      return ok(countCalls(place, query));
    case "/tree/levels":
      return ok(levelsTo(place, one(query, "reveal") ?? "", Number(one(query, "from") ?? 0)));
    case "/tree":
      return ok({ path: wayTo(place, one(query, "reveal") ?? "") });
    case "/strip":
      return ok(narrowStrip(stripOf(place, filled), Number(one(query, "buckets"))));
    case "/nodes/{name}/reach":
      return reached(place, filled, query);
    default:
      return null;
  }
}

const MAPS = ["rank-map", "trends"];

/** Rows of a map whose names hold what is searched for. */
function searchedMap(filled: string, query: Query): Answer | null {
  const kept = stored(filled, { ...query, q: null })?.body as { items: { name: string }[]; total: number } | undefined;
  if (!kept) return null;
  const text = (one(query, "q") ?? "").toLowerCase();
  if (text === "") return ok(kept);
  const items = kept.items.filter(({ name }) => name.toLowerCase().includes(text));
  return ok({ ...kept, items, total: items.length });
}

function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** Of the file: as many as the server makes at most. */
const BUCKETS = 1500;

function stripOf({ step, rank }: HeldPlace, filled: string): Strip {
  return stored(filled, { step, rank, buckets: BUCKETS })?.body as Strip;
}

function reached(place: HeldPlace, filled: string, query: Query): Answer | null {
  const { step, rank } = place;
  const asked = words(query, "entry");
  if (asked.length > 0) {
    const all = stored(filled, { step, rank, entry: "all" })?.body as Reach | undefined;
    const wanted = new Set(asked.flatMap((part) => part.split(",").map(Number)));
    return all ? ok({ ...all, entries: all.entries.filter((entry) => wanted.has(entry)) }) : null;
  }
  const reach = stored(filled, { step, rank, buckets: BUCKETS })?.body as Reach | undefined;
  const strip = stripOf(place, `/api/comparisons/${contents().comparison}/strip`);
  return reach ? ok(narrowRuns(reach, strip.buckets.length, Number(one(query, "buckets") ?? BUCKETS))) : null;
}

/** Children of a row of the tree that the file holds, in runs without a gap. */
export function heldLevels(step: number, rank: number, parent: number): TreeLevels["levels"] {
  const place = contents().places.find((each) => each.step === step && each.rank === rank);
  return place ? branchLevels(place, parent) : [];
}
