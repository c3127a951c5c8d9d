/** A figure from the server, drawn in the colours of the page, with its text alternative below. */
import { useComputedColorScheme } from "@mantine/core";
import { replaceEqualDeep } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { loadPlotly } from "../../api/plotly";
import type { FigureReply } from "../../api/types";
import { thinTicks } from "../../base/numbers/axisTicks";
import { plotlyLocale, say, sayFigure } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { Failure } from "../basic/States";
import { sayWhole } from "../late/painted";
import { atRest } from "../late/rest";
import { usePrinting } from "../page/printing";
import classes from "./Figure.module.css";

const CONFIG = {
  displaylogo: false,
  modeBarButtons: [["resetScale2d"]],
  showTips: false,
};

/** Pixels of height from which a figure of several parts puts them below each other. */
const TALL = 300;

/** Pixels of a plot on a sheet of A4 or letter: what is printed is not measured. */
const PAPER = { width: 680, height: 280 };

interface FigureProps {
  reply: FigureReply;
  label: string;
  /** Lines that stand in the picture, above the plot. */
  title?: readonly string[] | undefined;
  /** Identity of the figure: another one is drawn without the zoom of the one before. */
  name: string;
  /** A clicked point that carries the place in call order of a node. */
  onPick?: (order: number) => void;
  /** A clicked cell of a map: the first index of it and the one behind its last, along the dimensions that go down and across. */
  onCell?: (down: Range, across: Range) => void;
}

export type Range = readonly [start: number, stop: number];

export function Figure({ reply, label, title, name, onPick, onCell }: FigureProps) {
  const { language } = useTranslation();
  // What is the same in the figure of before must be the same object: plotly.js draws only what is another one, so a plot of the
  // whole run moves its mark from call to call and keeps its curves.
  const before = useRef<FigureReply["figure"]>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the language decides what sayFigure returns
  const drawn = useMemo(() => {
    const next = reply.figure && hasPoints(reply.figure) ? sayFigure(reply.figure) : null;
    before.current = next && replaceEqualDeep(before.current, next);
    return before.current;
  }, [reply.figure, language]);
  const text = say(reply.text, reply.said);
  return (
    <figure className={classes.figure} data-testid="figure">
      {drawn && (
        <Plot figure={drawn} label={`${label}. ${text}`} title={title} name={name} onPick={onPick} onCell={onCell} />
      )}
      {reply.missing && <p className={classes.missing}>{say(reply.missing, reply.said)}</p>}
      {reply.text && <figcaption className={classes.text}>{text}</figcaption>}
    </figure>
  );
}

/** A figure without a single point shows nothing more than its text. */
function hasPoints(figure: NonNullable<FigureReply["figure"]>): boolean {
  const traces = (figure as { data?: Record<string, unknown>[] }).data ?? [];
  const filled = (values: unknown) =>
    Array.isArray(values) ? values.length > 0 : typeof values === "object" && values !== null;
  return traces.some((trace) => [trace.x, trace.y, trace.z].some(filled));
}

interface PlotProps {
  figure: NonNullable<FigureReply["figure"]>;
  label: string;
  title: FigureProps["title"];
  name: string;
  onPick: FigureProps["onPick"];
  onCell: FigureProps["onCell"];
}

function Plot({ figure, label, title, name, onPick, onCell }: PlotProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const listeners = useRef({ onPick, onCell });
  listeners.current = { onPick, onCell };
  const [problem, setProblem] = useState<unknown>(null);
  const [tall, setTall] = useState(false);
  const written = title?.join("\n") ?? "";
  const colorScheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  const printing = usePrinting();

  // biome-ignore lint/correctness/useExhaustiveDependencies: colours are read from the page, which follows the scheme
  useEffect(() => {
    const element = box.current;
    let gone = false;
    // Drawing cannot be broken off, so it waits for a rest of the keys.
    let callOff = () => {};
    const rested = new Promise<void>((resolve) => {
      callOff = atRest(resolve);
    });
    Promise.all([loadPlotly(), rested])
      .then(async ([plotly]) => {
        if (gone || !element) return;
        const { data, layout } = figure as { data?: unknown[]; layout?: Record<string, unknown> };
        const height = printing ? PAPER.height : element.clientHeight;
        const themes = { ...themed(layout ?? {}, height, tall), ...(printing ? PAPER : {}), uirevision: name };
        const shown = written ? titled(themes, written.split("\n"), height) : themes;
        await plotly.react(element, data ?? [], shown, { ...CONFIG, ...plotlyLocale() });
        if (gone) return;
        element.dataset.drawn = name;
        sayWhole();
        setProblem(null);
        listen(element, listeners);
      })
      .catch((reason: unknown) => {
        if (!gone) setProblem(reason);
      });
    return () => {
      gone = true;
      callOff();
    };
  }, [figure, name, colorScheme, tall, written, printing]);

  // The plot follows its box: panels are dragged wider and the plot is enlarged without a change of the window.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => {
      setTall(element.clientHeight >= TALL);
      if (element.querySelector(".main-svg") && element.clientWidth > 0) window.Plotly?.Plots.resize(element);
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      window.Plotly?.purge(element);
    };
  }, []);

  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a figure that may hold the plot's own buttons, not a group of fields */}
      <div ref={box} className={classes.plot} hidden={problem !== null} role="group" aria-label={label} data-plot />
      {problem !== null && <Failure title={t("evidence.plotFailed")} problem={problem} />}
    </>
  );
}

interface PlotlyElement extends HTMLDivElement {
  data?: unknown[];
  layout?: Record<string, unknown>;
  on?: (event: string, handler: (event: { points?: Picked[] }) => void) => void;
  removeAllListeners?: (event: string) => void;
}

interface Picked {
  customdata?: unknown;
  /** Row and column, of a map. */
  pointNumber?: unknown;
  data?: { type?: string; x?: unknown; y?: unknown };
}

type Listeners = { readonly current: Pick<FigureProps, "onPick" | "onCell"> };

function listen(element: PlotlyElement, { current }: Listeners): void {
  element.removeAllListeners?.("plotly_click");
  element.on?.("plotly_click", ({ points }) => {
    const point = points?.[0];
    if (point?.data?.type !== "heatmap") {
      if (typeof point?.customdata === "number") current.onPick?.(point.customdata);
      return;
    }
    const [row, column] = Array.isArray(point.pointNumber) ? (point.pointNumber as number[]) : [];
    const down = cellRange(point.data.y, row);
    const across = cellRange(point.data.x, column);
    if (down && across) current.onCell?.(down, across);
  });
}

/** Indices of a cell whose edges lie half an index before its first and behind its last. */
function cellRange(edges: unknown, cell: number | undefined): Range | null {
  if (!Array.isArray(edges) || cell === undefined) return null;
  const [start, stop] = [Number(edges[cell]), Number(edges[cell + 1])];
  return stop > start ? [Math.round(start + 0.5), Math.round(stop + 0.5)] : null;
}

/** Pixels above and below the axes, and of a tick's label. */
const AROUND = 70;
const LABEL = 13;

/** Layout hints of the server: axis positions where there is room, and the list line to keep visible. */
interface Meta {
  tall?: Record<string, object>;
  inView?: number | null;
}

interface Axis {
  title?: object;
  range?: [number, number];
  tickvals?: number[];
  ticktext?: string[];
}

/** Written ticks of an upright axis, as many as its height has room for. A list read from the top keeps all its labels and shows
 * its first lines, or those up to the one that must be seen; the others come by dragging, or when the plot is enlarged. */
function roomy(key: string, axis: Axis, height: number, seen: number): object {
  if (!key.startsWith("y") || !axis.tickvals || !axis.ticktext) return {};
  const most = Math.floor((height - AROUND) / LABEL);
  const [bottom, top] = axis.range ?? [0, 0];
  if (bottom > top) {
    const lines = Math.max(2, most);
    const start = top + Math.max(0, seen + 1 - lines);
    return { range: [Math.min(bottom, start + lines), start] };
  }
  const { values, texts } = thinTicks({ values: axis.tickvals, texts: axis.ticktext }, most);
  return { tickvals: values, ticktext: texts };
}

/** Saves a drawn plot as a picture on the page's own ground: on a clear one, its words vanish on paper or in a slide. */
export async function savePlot(
  box: ParentNode | null,
  filename: string,
  format: "png" | "svg",
  title: readonly string[],
): Promise<void> {
  const element = box?.querySelector<PlotlyElement>("[data-plot]");
  if (!element?.layout) return;
  const panel = getComputedStyle(document.documentElement).getPropertyValue("--panel").trim();
  const plotly = await loadPlotly();
  const height = Math.max(360, element.clientHeight);
  const layout = element.layout.title ? element.layout : titled(element.layout, title, height);
  await plotly.downloadImage(
    { data: element.data, layout: { ...layout, paper_bgcolor: panel, plot_bgcolor: panel } },
    { format, width: Math.max(640, element.clientWidth), height, scale: format === "png" ? 2 : 1, filename },
  );
}

/** Pixels of a line of the title. */
const TITLE_LINE = 17;

/** The layout with these lines above the plot; plotly reads a little markup in them, and names come from files. */
function titled(layout: Record<string, unknown>, lines: readonly string[], height: number): Record<string, unknown> {
  const head = lines.length * TITLE_LINE + 4;
  const margin = layout.margin as { t?: number } | undefined;
  const text = lines
    .map((line) => line.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"))
    .join("<br>");
  return {
    ...layout,
    title: { text, x: 0.01, xanchor: "left", y: 1 - TITLE_LINE / height, yanchor: "top", font: { size: 12 } },
    margin: { ...margin, t: (margin?.t ?? 20) + head },
    legend: { ...(layout.legend as object), y: 1 - head / height },
  };
}

function themed(layout: Record<string, unknown>, height: number, tall: boolean): Record<string, unknown> {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const faint = style.getPropertyValue("--ink-2").trim();
  const line = style.getPropertyValue("--line").trim();
  const result: Record<string, unknown> = {
    ...layout,
    autosize: true,
    height: undefined,
    width: undefined,
    title: undefined,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...(layout.font as object), color: ink, size: 11 },
    margin: { ...(layout.margin as object), t: 20, b: 30, l: 44, r: 8 },
    legend: { ...(layout.legend as object), orientation: "h", x: 0, y: 1, yref: "container", yanchor: "top" },
    hoverlabel: { font: { size: 11 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: faint, activecolor: ink },
  };
  const meta = layout.meta as Meta | undefined;
  for (const [key, value] of Object.entries(layout)) {
    if (!/^[xy]axis\d*$/.test(key)) continue;
    const axis: Axis = { ...(value as Axis), ...(tall ? meta?.tall?.[key] : undefined) };
    const title = { ...axis.title, font: { size: 11 }, standoff: 4 };
    result[key] = {
      ...axis,
      ...roomy(key, axis, height, meta?.inView ?? 0),
      title,
      gridcolor: line,
      zerolinecolor: line,
      linecolor: line,
      automargin: true,
    };
  }
  return result;
}
