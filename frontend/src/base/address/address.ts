/** The state of a screen as kept in its address: `?s=0&r=0&n=NAME&tab=hist&f=class:origin&q=softmax&sort=name`. */
import { isUnmatchedCause, type UnmatchedCause } from "../comparison/unmatched";
import { type FilterWord, isMark, isVerdict, type VerdictWord } from "../comparison/verdicts";

/** In the order of their keys. */
export const PLOTS = ["hist", "pair", "api", "map", "order", "apis", "error", "values", "runs"] as const;
export type PlotTab = (typeof PLOTS)[number];

/** Those of one dump alone, in the order of their keys. */
export const DUMP_PLOTS = ["hist", "map", "values", "order", "apis"] as const satisfies readonly PlotTab[];
export type DumpPlotTab = (typeof DUMP_PLOTS)[number];

export const MEASURES = ["norm", "max"] as const;
export type Measure = (typeof MEASURES)[number];

export const SORTS = ["order", "-out_score", "-ratio", "name"] as const;
export type Sort = (typeof SORTS)[number];

/** Columns that the numbers of a call can be sorted by; null: what differs comes first. */
export const NUMBER_SORTS = ["name", "max", "min", "mean", "norm"] as const;
export type NumberColumn = (typeof NUMBER_SORTS)[number];
/** With "-" in front: the largest first. */
export type NumberSort = NumberColumn | `-${NumberColumn}`;

/** What can stand large in the place of tree and list. */
export const STAGES = ["path", "plot"] as const;
export type Stage = (typeof STAGES)[number];

/** Steps of the path view on each side. */
export const HOPS = [1, 2, 3] as const;
export type Hops = (typeof HOPS)[number];

export interface Filter {
  classes: FilterWord[];
  verdicts: VerdictWord[];
  /** Calls without a partner, for any of these causes. */
  leftovers: UnmatchedCause[];
  api: string | null;
  /** First and last place in call order, both included. */
  range: [number, number] | null;
}

export interface Address {
  step: number | null;
  rank: number | null;
  node: string | null;
  /** null: the plot that suits the kind of comparison. */
  tab: PlotTab | null;
  /** null: the scale that suits the plot. */
  log: boolean | null;
  /** Tensor of the node that the plot is about, as `output.0`; null: the worst. */
  item: string | null;
  /** Dimensions of that tensor shown as rows and columns; null: the server chooses. */
  axes: number[] | null;
  /** Element of that tensor whose value is shown; null: the worst. */
  at: number[] | null;
  /** A cell of the map holds the root mean square instead of the largest difference. */
  rms: boolean;
  /** What of its outputs a plot of a run shows; null: what was recorded. */
  measure: Measure | null;
  filter: Filter;
  query: string;
  sort: Sort;
  /** null: what differs first. */
  numbers: NumberSort | null;
  /** A histogram shows shares instead of counts. */
  ecdf: boolean;
  stage: Stage | null;
  /** null: as many as the stage has room for. */
  hops: Hops | null;
  /** Whether the list of suspects is open; null: as suits their number. */
  suspects: boolean | null;
  /** Id of the dialog that is open over the screen; each screen has its own (`dialogs` of views/comparison). */
  dialog: string | null;
}

export const NO_FILTER: Filter = { classes: [], verdicts: [], leftovers: [], api: null, range: null };

export function parseAddress(search: string): Address {
  const params = new URLSearchParams(search);
  const tab = params.get("tab");
  const sort = params.get("sort");
  const dialog = params.get("do") ?? "";
  const stage = params.get("stage");
  const hops = whole(params.get("hops"));
  return {
    step: whole(params.get("s")),
    rank: whole(params.get("r")),
    node: params.get("n") || null,
    tab: PLOTS.find((plot) => plot === tab) ?? null,
    log: ON.get(params.get("log") ?? "") ?? null,
    item: params.get("i") || null,
    axes: numbers(params.get("ax"), 2),
    at: numbers(params.get("at"), 64),
    rms: params.get("red") === "rms",
    measure: MEASURES.find((one) => one === params.get("m")) ?? null,
    filter: parseFilter(params.get("f") ?? ""),
    query: params.get("q") ?? "",
    sort: SORTS.find((known) => known === sort) ?? "order",
    numbers: numberSort(params.get("io")),
    ecdf: params.get("ecdf") === "1",
    stage: STAGES.find((known) => known === stage) ?? null,
    hops: HOPS.find((known) => known === hops) ?? null,
    suspects: ON.get(params.get("sus") ?? "") ?? null,
    dialog: /^[a-z]{1,32}$/.test(dialog) ? dialog : null,
  };
}

/** The query string of an address, without "?"; defaults are left out. */
export function formatAddress(address: Address): string {
  const params = new URLSearchParams();
  if (address.step !== null) params.set("s", String(address.step));
  if (address.rank !== null) params.set("r", String(address.rank));
  if (address.node !== null) params.set("n", address.node);
  if (address.tab !== null) params.set("tab", address.tab);
  if (address.log !== null) params.set("log", address.log ? "1" : "0");
  if (address.item !== null) params.set("i", address.item);
  if (address.axes !== null) params.set("ax", address.axes.join(","));
  if (address.at !== null) params.set("at", address.at.join(","));
  if (address.rms) params.set("red", "rms");
  if (address.measure !== null) params.set("m", address.measure);
  const filter = formatFilter(address.filter);
  if (filter) params.set("f", filter);
  if (address.query) params.set("q", address.query);
  if (address.sort !== "order") params.set("sort", address.sort);
  if (address.numbers !== null) params.set("io", address.numbers);
  if (address.ecdf) params.set("ecdf", "1");
  if (address.stage !== null) params.set("stage", address.stage);
  if (address.hops !== null) params.set("hops", String(address.hops));
  if (address.suspects !== null) params.set("sus", address.suspects ? "1" : "0");
  if (address.dialog !== null) params.set("do", address.dialog);
  return params.toString();
}

/** `class:origin,class:amplifier,verdict:no,api:Functional.softmax,order:10-40`; values are percent-encoded once. */
export function parseFilter(text: string): Filter {
  const filter: Filter = { classes: [], verdicts: [], leftovers: [], api: null, range: null };
  for (const token of text.split(",")) {
    const colon = token.indexOf(":");
    if (colon < 0) continue;
    const key = token.slice(0, colon);
    const value = decode(token.slice(colon + 1));
    if (key === "class" && isMark(value) && !filter.classes.includes(value)) filter.classes.push(value);
    if (key === "verdict" && isVerdict(value) && !filter.verdicts.includes(value)) filter.verdicts.push(value);
    if (key === "left" && isUnmatchedCause(value) && !filter.leftovers.includes(value)) filter.leftovers.push(value);
    if (key === "api" && value) filter.api = value;
    if (key === "order") {
      const match = /^(\d+)-(\d+)$/.exec(value);
      if (match) filter.range = [Number(match[1]), Number(match[2])];
    }
  }
  return filter;
}

export function formatFilter(filter: Filter): string {
  const tokens = [
    ...filter.classes.map((word) => `class:${word}`),
    ...filter.verdicts.map((word) => `verdict:${encodeURIComponent(word)}`),
    ...filter.leftovers.map((word) => `left:${word}`),
  ];
  if (filter.api !== null) tokens.push(`api:${encodeURIComponent(filter.api)}`);
  if (filter.range !== null) tokens.push(`order:${filter.range[0]}-${filter.range[1]}`);
  return tokens.join(",");
}

/** The address after a change. A new node resets the tensor, and a new tensor its dimensions and element. */
export function applyChange(address: Address, change: Partial<Address>): Address {
  const moved = change.node !== undefined && change.node !== address.node && address.node !== null;
  const fresh: Partial<Address> = moved ? { item: null, axes: null, at: null } : {};
  if (change.item !== undefined && change.item !== address.item) Object.assign(fresh, { axes: null, at: null });
  return { ...address, ...fresh, ...change };
}

/** The change that shows a plot, in its default scale. */
export function toPlot(address: Address, tab: PlotTab): Partial<Address> {
  return tab === address.tab ? {} : { tab, log: null };
}

export function isFiltered(address: Pick<Address, "filter" | "query">): boolean {
  return formatFilter(address.filter) !== "" || address.query !== "";
}

const ON: ReadonlyMap<string, boolean> = new Map([
  ["1", true],
  ["0", false],
]);

/** `3,5`: whole numbers with commas between. */
function numbers(text: string | null, most: number): number[] | null {
  if (text === null || !/^\d{1,15}(,\d{1,15})*$/.test(text)) return null;
  const found = text.split(",").map(Number);
  return found.length <= most ? found : null;
}

function numberSort(text: string | null): NumberSort | null {
  const column = NUMBER_SORTS.find((one) => one === text?.replace(/^-/, ""));
  return column === undefined ? null : text === column ? column : `-${column}`;
}

/** What a click on the title of a column changes the order to: the largest (of names the first) first, the other way round, as it was. */
export function nextNumberSort(now: NumberSort | null, column: NumberColumn): NumberSort | null {
  const ways: NumberSort[] = column === "name" ? [column, `-${column}`] : [`-${column}`, column];
  const at = now === null ? -1 : ways.indexOf(now);
  return ways[at + 1] ?? null;
}

function whole(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
