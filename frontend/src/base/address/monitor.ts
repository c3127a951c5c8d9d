/** The state of a monitored run as kept in its address: `?rank=1&metric=update&stat=ratio&n=fc.weight&step=40&first=0&last=99`. */

export const ANOMALY_SORTS = ["gravest", "step", "-step", "name", "-factor"] as const;
export type AnomalySort = (typeof ANOMALY_SORTS)[number];

/** Curves drawn at once. */
export const MOST_SERIES = 6;

export interface MonitorAddress {
  /** null: what the answer is about, else the first. */
  rank: number | null;
  metric: string | null;
  statistic: string | null;
  /** Numbers of the run alone, although there is another one. */
  alone: boolean;
  order: "hottest" | "model";
  /** What a row of the map is; of modules, the one that is open. */
  by: "series" | "module";
  module: string | null;
  /** Part of the names in the map. */
  query: string;
  /** Series with a curve; null: what the answer is about. */
  series: string[] | null;
  step: number | null;
  /** First and last step on the screen. */
  first: number | null;
  last: number | null;
  /** Part of the names in the list of anomalies, and its order. */
  anomalies: string;
  sort: AnomalySort;
}

export function parseMonitorAddress(search: string): MonitorAddress {
  const params = new URLSearchParams(search);
  const sort = params.get("sort");
  const series = params.getAll("n").slice(0, MOST_SERIES);
  return {
    rank: wholeNumber(params.get("rank"), false),
    metric: params.get("metric") || null,
    statistic: params.get("stat") || null,
    alone: params.get("view") === "alone",
    order: params.get("order") === "model" ? "model" : "hottest",
    by: params.get("by") === "module" ? "module" : "series",
    module: params.get("m") || null,
    query: params.get("q") ?? "",
    series: series.length === 0 ? null : series.filter((name) => name !== ""),
    step: wholeNumber(params.get("step")),
    first: wholeNumber(params.get("first")),
    last: wholeNumber(params.get("last")),
    anomalies: params.get("a") ?? "",
    sort: ANOMALY_SORTS.find((known) => known === sort) ?? "gravest",
  };
}

/** The query string of an address, without "?"; defaults are left out. */
export function formatMonitorAddress(address: MonitorAddress): string {
  const params = new URLSearchParams();
  const put = (key: string, value: string | number | null) => {
    if (value !== null && value !== "") params.set(key, String(value));
  };
  put("rank", address.rank);
  put("metric", address.metric);
  put("stat", address.statistic);
  put("view", address.alone ? "alone" : null);
  put("order", address.order === "model" ? "model" : null);
  put("by", address.by === "module" ? "module" : null);
  put("m", address.by === "module" ? address.module : null);
  put("q", address.query);
  for (const name of address.series ?? []) params.append("n", name);
  if (address.series?.length === 0) params.set("n", "");
  put("step", address.step);
  put("first", address.first);
  put("last", address.last);
  put("a", address.anomalies);
  put("sort", address.sort === "gravest" ? null : address.sort);
  return params.toString();
}

function wholeNumber(text: string | null, signed = true): number | null {
  if (text === null || !/^-?\d{1,15}$/.test(text)) return null;
  const value = Number(text);
  return signed || (value >= 0 && value < 2 ** 31) ? value : null;
}
