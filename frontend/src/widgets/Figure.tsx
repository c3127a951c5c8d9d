/** A figure from the server, drawn in the colours of the page, with its text alternative below. */
import { useMantineColorScheme } from "@mantine/core";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { loadPlotly } from "../api/plotly";
import type { FigureReply } from "../api/types";
import { thinTicks } from "../base/ticks";
import { plotlyLocale, say, sayFigure } from "../texts/said";
import classes from "./Figure.module.css";
import { Failure } from "./States";

const CONFIG = {
  displaylogo: false,
  modeBarButtons: [["toImage", "resetScale2d"]],
  showTips: false,
};

interface FigureProps {
  reply: FigureReply;
  label: string;
  /** A clicked point that carries the place in call order of a node. */
  onPick?: (order: number) => void;
}

export function Figure({ reply, label, onPick }: FigureProps) {
  const { i18n } = useTranslation();
  // The same figure must be the same object: a new one is drawn again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the language decides what sayFigure returns
  const drawn = useMemo(
    () => (reply.figure && hasPoints(reply.figure) ? sayFigure(reply.figure) : null),
    [reply.figure, i18n.language],
  );
  const text = say(reply.text, reply.said);
  return (
    <figure className={classes.figure} data-testid="figure">
      {drawn && <Plot figure={drawn} label={`${label}. ${text}`} onPick={onPick} />}
      {reply.missing && <p className={classes.missing}>{say(reply.missing, reply.said)}</p>}
      {reply.text && <figcaption className={classes.text}>{text}</figcaption>}
    </figure>
  );
}

/** A figure none of whose traces holds a point says nothing that its text does not. */
function hasPoints(figure: NonNullable<FigureReply["figure"]>): boolean {
  const traces = (figure as { data?: Record<string, unknown>[] }).data ?? [];
  const filled = (values: unknown) =>
    Array.isArray(values) ? values.length > 0 : typeof values === "object" && values !== null;
  return traces.some((trace) => [trace.x, trace.y, trace.z].some(filled));
}

interface PlotProps {
  figure: NonNullable<FigureReply["figure"]>;
  label: string;
  onPick: FigureProps["onPick"];
}

function Plot({ figure, label, onPick }: PlotProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const [problem, setProblem] = useState<unknown>(null);
  const { colorScheme } = useMantineColorScheme();

  // biome-ignore lint/correctness/useExhaustiveDependencies: colours are read from the page, which follows the scheme
  useEffect(() => {
    const element = box.current;
    let gone = false;
    loadPlotly()
      .then(async (plotly) => {
        if (gone || !element) return;
        const { data, layout } = figure as { data?: unknown[]; layout?: Record<string, unknown> };
        await plotly.react(element, data ?? [], themed(layout ?? {}, element.clientHeight), {
          ...CONFIG,
          ...plotlyLocale(),
        });
        setProblem(null);
        listen(element, (order) => pick.current?.(order));
      })
      .catch((reason: unknown) => {
        if (!gone) setProblem(reason);
      });
    return () => {
      gone = true;
    };
  }, [figure, colorScheme]);

  // The plot follows its box: panels are dragged wider and the plot is enlarged without a change of the window.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => {
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
      <div ref={box} className={classes.plot} hidden={problem !== null} role="group" aria-label={label} />
      {problem !== null && <Failure title={t("evidence.plotFailed")} problem={problem} />}
    </>
  );
}

interface PlotlyElement extends HTMLDivElement {
  on?: (event: string, handler: (event: { points?: { customdata?: unknown }[] }) => void) => void;
  removeAllListeners?: (event: string) => void;
}

function listen(element: PlotlyElement, choose: (order: number) => void): void {
  element.removeAllListeners?.("plotly_click");
  element.on?.("plotly_click", ({ points }) => {
    const order = points?.[0]?.customdata;
    if (typeof order === "number") choose(order);
  });
}

/** Pixels above and below the axes, and of a tick's label. */
const AROUND = 70;
const LABEL = 13;

/** Written ticks of an upright axis, as many as its height has room for. */
function roomy(key: string, axis: { tickvals?: number[]; ticktext?: string[] }, height: number): object {
  if (!key.startsWith("y") || !axis.tickvals || !axis.ticktext) return {};
  const most = Math.floor((height - AROUND) / LABEL);
  const { values, texts } = thinTicks({ values: axis.tickvals, texts: axis.ticktext }, most);
  return { tickvals: values, ticktext: texts };
}

function themed(layout: Record<string, unknown>, height: number): Record<string, unknown> {
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
  for (const [key, value] of Object.entries(layout)) {
    if (!/^[xy]axis\d*$/.test(key)) continue;
    const axis = value as { title?: object; tickvals?: number[]; ticktext?: string[] };
    const title = { ...axis.title, font: { size: 11 }, standoff: 4 };
    result[key] = {
      ...axis,
      ...roomy(key, axis, height),
      title,
      gridcolor: line,
      zerolinecolor: line,
      linecolor: line,
      automargin: true,
    };
  }
  return result;
}
