/** What is shown of a monitored run, from its address and from what was found; and what metrics and statistics are called. */
import type { MonitorFindings, MonitorRuns } from "../../api/types";
import { getLocation, navigate } from "../../base/address/location";
import { formatMonitorAddress, type MonitorAddress, parseMonitorAddress } from "../../base/address/monitor";
import { useTranslation } from "../../texts/useTranslation";

/** A change of the address; what is typed leaves no step for the back button. */
export function changeMonitor(part: Partial<MonitorAddress>, replace = false): void {
  const { path, search } = getLocation();
  navigate(path, formatMonitorAddress({ ...parseMonitorAddress(search), ...part }), replace);
}

const METRICS = [
  "grad_unreduced",
  "grad_unclipped",
  "grad_reduced",
  "exp_avg",
  "exp_avg_sq",
  "param_origin",
  "param_updated",
  "update",
  "actv",
  "actv_grad",
  "loss",
  "lr",
] as const;
const STATISTICS = ["norm", "min", "max", "mean", "zeros", "nans", "ratio"] as const;

/** Words for metrics and statistics; those of other tools are called as they call them. */
export function useMonitorWords() {
  const { t } = useTranslation();
  return {
    metric: (word: string) => {
      const known = METRICS.find((one) => one === word);
      return known ? t(`monitors.metrics.${known}`) : word;
    },
    statistic: (word: string) => {
      const known = STATISTICS.find((one) => one === word);
      return known ? t(`monitors.statistics.${known}`) : word;
    },
  };
}

export interface Choice {
  rank: number;
  metric: string;
  statistic: string;
  series: string[];
  step: number | null;
}

/** What is about the same names: gradients, moments, updates and weights of parameters; values of modules; a scalar alone. */
function family(metric: string): string {
  if (metric.startsWith("actv")) return "actv";
  return /^(?:grad_|exp_avg|param_|update$)/.test(metric) ? "param" : metric;
}

/** Series of one metric that another one has, too. */
export function seriesFor(metric: string, scalar: boolean, before: Choice): string[] {
  if (scalar) return [metric];
  return family(metric) === family(before.metric) ? before.series : [];
}

/** The choice of the address; what it leaves open is what was found first, else the gradients of the first rank. */
export function chooseShown(
  address: MonitorAddress,
  { run }: MonitorRuns,
  findings: MonitorFindings | undefined,
  gravest: { rank: number | null; metric: string; name: string | null; statistic: string; step: number } | undefined,
): Choice {
  const parts = findings?.divergences.find((one) => one.first !== null);
  const stray = findings?.strays[0];
  const found = parts?.first ? { rank: parts.rank, step: parts.step, ...parts.first } : (stray ?? gravest ?? null);
  const rank = run.ranks.find((one) => one.rank === (address.rank ?? found?.rank)) ?? run.ranks[0];
  const metrics = rank?.metrics ?? [];
  const preferred = [address.metric, found?.metric, "grad_reduced", "grad_unreduced", "actv"];
  const metric = preferred.flatMap((word) => metrics.find((one) => one.metric === word) ?? [])[0] ?? metrics[0] ?? null;
  const statistics = metric?.statistics ?? [];
  const own = metric !== null && metric.metric === found?.metric;
  const wanted = [address.statistic, own && found && "statistic" in found ? found.statistic : null, "norm"];
  const statistic = wanted.find((word) => word !== null && statistics.includes(word)) ?? statistics[0] ?? "norm";
  const name = metric?.scalar ? metric.metric : own ? (found?.name ?? null) : null;
  return {
    rank: rank?.rank ?? 0,
    metric: metric?.metric ?? "",
    statistic,
    series: address.series ?? (name === null ? [] : [name]),
    step: address.step ?? (address.series === null && own ? (found?.step ?? null) : null),
  };
}
