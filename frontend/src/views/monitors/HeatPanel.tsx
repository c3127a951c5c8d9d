import { NumberInput, SegmentedControl } from "@mantine/core";
import { type MouseEvent, useEffect, useRef, useState } from "react";
import { type Shown, useMonitorHeat } from "../../api/monitors";
import type { HeatRow, Monitor, MonitorRuns, StepBin } from "../../api/types";
import { MOST_SERIES, type MonitorAddress } from "../../base/address/monitor";
import { formatCount, formatReal, formatShare } from "../../base/numbers/format";
import { heatOfLetter } from "../../base/numbers/heat";
import { formatSpan } from "../../base/numbers/trendLines";
import { useTranslation } from "../../texts/useTranslation";
import { MoreRows } from "../../widgets/basic/MoreRows";
import { SearchField } from "../../widgets/basic/SearchField";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import { useWidth } from "../../widgets/basic/sizes";
import { useDebounced } from "../../widgets/basic/useDebounced";
import { useKeys } from "../../widgets/basic/useKeys";
import { HeatCell, HeatTable } from "../../widgets/tensors/HeatTable";
import { ChoiceField } from "../../widgets/tensors/TrendControls";
import classes from "./Monitors.module.css";
import { type Choice, changeMonitor, seriesFor, useMonitorWords } from "./monitorWords";

/** Pixels of a column, of what stands before them, and of a column's words. */
const COLUMN = 8;
const BEFORE = 342;
const WORDS = 56;
/** The number of columns goes by so many, so that a small change of the window asks for nothing. */
const STRIDE = 10;

interface HeatPanelProps {
  row: Monitor;
  runs: MonitorRuns;
  address: MonitorAddress;
  choice: Choice;
  shown: Shown;
}

/** Series down, steps across, the most unusual number of each bin as colour. */
export function HeatPanel({ row, runs, address, choice, shown }: HeatPanelProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLElement>(null);
  const width = useWidth(box);
  const columns = width === 0 ? 0 : Math.min(200, Math.max(2, Math.floor((width - BEFORE) / COLUMN / STRIDE)) * STRIDE);
  const against = row.other !== null && !address.alone;
  const { by, order, query: q } = address;
  const found = useMonitorHeat(row.id, shown, { against, order, by, q, columns });
  const module = by === "module" ? address.module : null;
  const inside = useMonitorHeat(row.id, shown, {
    against,
    order,
    by: "series",
    module,
    q: "",
    columns: module === null ? 0 : columns,
  });
  const pages = found.data?.pages ?? [];
  const inner = module === null ? [] : (inside.data?.pages.flatMap((page) => page.items) ?? []);
  const rows = pages
    .flatMap((page) => page.items)
    .flatMap((one) => (by === "module" && one.name === module ? [one, ...inner] : [one]));
  const bins = pages[0]?.bins ?? [];
  const total = pages[0]?.total ?? 0;
  const outer = rows.length - (rows.some(({ name }) => name === module) ? inner.length : 0);
  const names = rows.filter((one) => !isOpen(one, module)).map(({ hottest }) => hottest);
  const walk = (delta: 1 | -1) => {
    const place = names.indexOf(choice.series[0] ?? "");
    const next = place < 0 ? names[0] : names[place + delta];
    if (next !== undefined) changeMonitor({ series: [next], step: choice.step });
  };
  useKeys({
    nextNode: () => walk(1),
    previousNode: () => walk(-1),
    search: () => box.current?.querySelector<HTMLInputElement>("input[type=search]")?.focus(),
    escape: () => changeMonitor({ series: [] }),
  });
  return (
    <section className={`panel ${classes.map}`} ref={box} aria-label={t("monitors.map")} data-testid="monitor-map">
      <Controls row={row} runs={runs} address={address} choice={choice} against={against} />
      {found.error && <Failure problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {found.data && rows.length === 0 && (
        <Empty>{t(against && address.query === "" ? "monitors.nothingCommon" : "monitors.none")}</Empty>
      )}
      {rows.length > 0 && bins.length === 0 && <Empty>{t("monitors.noSteps")}</Empty>}
      {rows.length > 0 && bins.length > 0 && (
        <div className={classes.rows} aria-busy={found.isPlaceholderData}>
          <Cells
            rows={rows}
            bins={bins}
            choice={choice}
            against={against}
            room={width - BEFORE}
            by={by}
            module={module}
            inner={inner}
          />
          <div className={`${classes.foot} dim`}>
            <span className={classes.key} aria-hidden="true" />
            <span>{t(against ? "monitors.legendApart" : "monitors.legendAlone")}</span>
            <span className="num">{t("home.shown", { shown: formatCount(outer), total: formatCount(total) })}</span>
            <MoreRows list={found} />
            {module !== null && <MoreRows list={inside}>{t("monitors.moreOf", { name: module })}</MoreRows>}
          </div>
        </div>
      )}
    </section>
  );
}

interface CellsProps {
  rows: readonly HeatRow[];
  bins: readonly StepBin[];
  choice: Choice;
  against: boolean;
  /** Pixels for all columns. */
  room: number;
  by: MonitorAddress["by"];
  /** The module that is open, and the rows of its series. */
  module: string | null;
  inner: readonly HeatRow[];
}

/** The module of a series: of a parameter all but its last word. */
function moduleOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("."))) || name;
}

/** Whether a row is the module whose series are shown below it. */
function isOpen(row: HeatRow, module: string | null): boolean {
  return row.series > 1 && row.name === module;
}

function Cells({ rows, bins, choice, against, room, by, module, inner }: CellsProps) {
  const { t } = useTranslation();
  const words = useMonitorWords();
  const wide = Math.min(3 * COLUMN, Math.max(COLUMN, Math.floor((10 * room) / bins.length) / 10));
  const every = Math.ceil(WORDS / wide);
  const marked = bins.findIndex(
    ({ first, last }) => choice.step !== null && first <= choice.step && choice.step <= last,
  );
  const choose = (name: string, event: MouseEvent, step: number | null) => {
    const more = event.shiftKey || event.ctrlKey || event.metaKey;
    changeMonitor({ series: more ? toggled(choice.series, name) : [name], step });
  };
  const isChosen = (row: HeatRow) =>
    row.series === 1
      ? choice.series.includes(row.hottest)
      : !isOpen(row, module) && choice.series.some((name) => moduleOf(name) === row.name);
  const openModule = (name: string) => changeMonitor({ module: name === module ? null : name });
  const title = (row: HeatRow, place: number) => {
    const where = `${row.name}, ${t("unit.step")} ${formatSpan(bins[place] ?? { first: 0, last: 0 })}`;
    const value = row.values[place];
    if (value === null || value === undefined) return `${where}: ${t("monitors.absent")}`;
    return against
      ? t("monitors.cellApart", { where, share: formatShare(value) })
      : t(row.series > 1 ? "monitors.cellOf" : "monitors.cell", {
          where,
          what: words.statistic(choice.statistic),
          value: formatReal(value, 3),
          usual: formatReal(row.usual, 3),
          series: formatCount(row.series),
        });
  };
  return (
    <HeatTable
      label={t("monitors.map")}
      down={t(by === "module" ? "monitors.columns.module" : "monitors.columns.series")}
      across={t("unit.step")}
      columns={bins.map((bin, place) => ({
        key: bin.first,
        text: place % every === 0 ? String(bin.first) : "",
        title: `${t("unit.step")} ${formatSpan(bin)}`,
      }))}
      width={wide}
      lead={{
        text: t(against ? "monitors.apart" : "monitors.usual"),
        title: t(against ? "monitors.apartHint" : "monitors.usualHint"),
      }}
      goal={marked}
      rows={rows.map((row) => ({
        name: row.name,
        lead: against ? largest(row) : row.series > 1 ? "" : formatReal(row.usual, 3),
        current: isChosen(row),
        open: row.series > 1 ? row.name === module : undefined,
        inner: inner.includes(row),
        onName: (event) => (row.series > 1 ? openModule(row.name) : choose(row.hottest, event, choice.step)),
        cell: (place) => {
          const heat = heatOfLetter(row.heat[place]);
          if (heat === null) return null;
          return (
            <HeatCell
              bad={heat !== Number.POSITIVE_INFINITY}
              heat={Math.min(1, heat)}
              lost={heat === Number.POSITIVE_INFINITY}
              label={null}
              title={title(row, place)}
              current={place === marked && isChosen(row)}
              onClick={(event) => choose(row.hottest, event, bins[place]?.first ?? null)}
            />
          );
        },
      }))}
    />
  );
}

/** The largest distance of a series. */
function largest(row: HeatRow): string {
  const known = row.values.filter((value): value is number => typeof value === "number");
  return known.length === 0 ? "—" : formatShare(Math.max(...known));
}

function toggled(series: readonly string[], name: string): string[] {
  if (series.includes(name)) return series.filter((one) => one !== name);
  return [...series, name].slice(-MOST_SERIES);
}

interface ControlsProps {
  row: Monitor;
  runs: MonitorRuns;
  address: MonitorAddress;
  choice: Choice;
  against: boolean;
}

function Controls({ row, runs, address, choice, against }: ControlsProps) {
  const { t } = useTranslation();
  const words = useMonitorWords();
  const [text, setText] = useState(address.query);
  const wanted = useDebounced(text.trim(), 250);
  useEffect(() => changeMonitor({ query: wanted }, true), [wanted]);
  const { ranks } = runs.run;
  const metrics = ranks.find((one) => one.rank === choice.rank)?.metrics ?? [];
  const statistics = metrics.find((one) => one.metric === choice.metric)?.statistics ?? [];
  return (
    <div className={classes.controls}>
      <ChoiceField
        label={t("monitors.metric")}
        testId="monitor-metric"
        width={184}
        value={choice.metric}
        values={metrics.map(({ metric }) => ({ value: metric, label: words.metric(metric) }))}
        onChange={(metric) =>
          changeMonitor({
            metric,
            statistic: null,
            series: seriesFor(metric, metrics.find((one) => one.metric === metric)?.scalar ?? false, choice),
            step: choice.step,
          })
        }
      />
      {statistics.length > 1 && (
        <ChoiceField
          label={t("monitors.statistic")}
          testId="monitor-statistic"
          width={84}
          value={choice.statistic}
          values={statistics.map((word) => ({ value: word, label: words.statistic(word) }))}
          onChange={(statistic) =>
            changeMonitor({ statistic, series: choice.series, step: choice.step, metric: choice.metric })
          }
        />
      )}
      {ranks.length > 1 && (
        <ChoiceField
          label={t("unit.rank")}
          testId="monitor-rank"
          width={84}
          value={String(choice.rank)}
          values={ranks.map(({ rank }) => ({ value: String(rank), label: `${t("unit.rank")} ${rank}` }))}
          onChange={(rank) =>
            changeMonitor({ rank: Number(rank), series: choice.series, step: choice.step, metric: choice.metric })
          }
        />
      )}
      {row.other !== null && (
        <SegmentedControl
          size="xs"
          aria-label={t("monitors.numbers")}
          data={[
            { value: "apart", label: t("monitors.apartFrom") },
            { value: "alone", label: t("monitors.alone") },
          ]}
          value={against ? "apart" : "alone"}
          onChange={(word) => changeMonitor({ alone: word === "alone" })}
        />
      )}
      <SegmentedControl
        size="xs"
        aria-label={t("monitors.order")}
        data={[
          { value: "hottest", label: t("monitors.hottest") },
          { value: "model", label: t("monitors.model") },
        ]}
        value={address.order}
        onChange={(word) => changeMonitor({ order: word === "model" ? "model" : "hottest" })}
      />
      <SegmentedControl
        size="xs"
        aria-label={t("monitors.rows")}
        data={[
          { value: "series", label: t("monitors.bySeries") },
          { value: "module", label: t("monitors.byModule") },
        ]}
        value={address.by}
        onChange={(word) => changeMonitor({ by: word === "module" ? "module" : "series" })}
      />
      <Steps address={address} />
      <SearchField className={classes.search} label={t("monitors.search")} text={text} onText={setText} />
    </div>
  );
}

/** First and last step that map and curves show. */
function Steps({ address }: { address: MonitorAddress }) {
  const { t } = useTranslation();
  const field = (part: "first" | "last") => (
    <NumberInput
      size="xs"
      w={68}
      hideControls
      allowDecimal={false}
      aria-label={t(`monitors.${part}`)}
      placeholder={t(part === "first" ? "monitors.firstShort" : "monitors.lastShort")}
      value={address[part] ?? ""}
      onChange={(value) => changeMonitor({ [part]: typeof value === "number" ? value : null }, true)}
    />
  );
  return (
    <span className={classes.steps}>
      {field("first")}–{field("last")}
    </span>
  );
}
