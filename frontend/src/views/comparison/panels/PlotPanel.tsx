import { Checkbox, Menu } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ComponentProps, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type FigureQuery, fetchWorst, figureCsvUrl, figureOptions, useFigure } from "../../../api/comparison/figures";
import { loadPlotly } from "../../../api/plotly";
import type { NodeDetail, Pair, Values } from "../../../api/types";
import { type Address, PLOTS, type PlotTab, toPlot } from "../../../base/address/address";
import { toNumber } from "../../../base/numbers/format";
import { commonShape, writeCsv } from "../../../base/numbers/tensorValues";
import { useTranslation } from "../../../texts/useTranslation";
import { downloadText } from "../../../widgets/basic/download";
import { currentAddress } from "../../../widgets/basic/navigation";
import { describeProblem } from "../../../widgets/basic/States";
import type { Range } from "../../../widgets/plots/Figure";
import { drawnAxes, FigureBox, FigureFiles, partOf } from "../../../widgets/plots/FigureBox";
import { AxisFields, PlotFrame, ReduceField, TensorField } from "../../../widgets/plots/PlotFrame";
import classes from "../../../widgets/plots/Plots.module.css";
import { PlotTabs } from "../../../widgets/plots/PlotTabs";
import { useSelectionNow } from "../selection/Following";
import { useSay } from "../selection/notice";
import { useShownComparison } from "../selection/result";
import { useSelectedCall, useSelection } from "../selection/SelectionProvider";
import { useSelectByOrder } from "../selection/useCallWalk";
import { ValueWindow } from "./ValueWindow";

/** Names of the figures on the server; values are no figure. */
const FIGURES: Record<PlotTab, string | null> = {
  hist: "histogram",
  pair: "pair-density",
  api: "api-distribution",
  map: "difference-map",
  order: "error-order",
  apis: "api-errors",
  error: "error-histogram",
  values: null,
  runs: "call-runs",
};

/** Plots about one tensor of the call. */
const OF_TENSOR: ReadonlySet<PlotTab> = new Set(["hist", "pair", "map", "error", "values"]);

function figureQuery(address: Address, tab: PlotTab, node: string | null, pair: number | null): FigureQuery | null {
  const name = FIGURES[tab];
  if (name === null) return null;
  return {
    name,
    node,
    pair,
    log: address.log,
    axes: tab === "map" ? address.axes : null,
    reduce: address.rms ? "rms" : "max",
    ecdf: tab === "hist" && address.ecdf,
  };
}

/**
 * While the first call is read: what will draw its plot is run, and a plot of the run is asked for, which needs no more of the call
 * than its name. One behind the other takes half a second on a large run.
 */
export function PlotAhead() {
  const comparison = useShownComparison();
  const { address, selected, unit } = useSelection();
  const tensors = comparison.mode === "tensor";
  const tab = address.tab ?? (tensors ? null : "order");
  const client = useQueryClient();
  useEffect(() => {
    if (tab !== null && !OF_TENSOR.has(tab) && unit !== null && selected !== null) {
      void client.prefetchQuery(figureOptions(comparison.id, unit, figureQuery(address, tab, selected, null)));
    }
  }, [client, comparison.id, unit, selected, address, tab]);
  usePlotly(tab === null ? tensors : isDrawn(tab, tensors));
  return null;
}

/** Whether plotly.js draws a plot; without tensors, words stand in the place of those of one. */
function isDrawn(tab: PlotTab, tensors: boolean): boolean {
  return OF_TENSOR.has(tab) ? tensors && tab !== "values" : true;
}

/** Has plotly.js run beside the request for its figure. */
function usePlotly(wanted: boolean): void {
  useEffect(() => {
    if (wanted) loadPlotly().catch(() => undefined); // whoever draws tells
  }, [wanted]);
}

interface PlotPanelProps {
  /** Large, in the place of tree and list. */
  stage?: boolean;
}

/** Pictures of the selected call, of one of its tensors, and of the run around it. */
export function PlotPanel({ stage = false }: PlotPanelProps) {
  const { t } = useTranslation();
  const say = useSay();
  const comparison = useShownComparison();
  const { address, update, selected, unit } = useSelection();
  const { node } = useSelectedCall();
  const selectByOrder = useSelectByOrder();
  const box = useRef<HTMLDivElement>(null);
  // Histograms need tensors of both sides; without them the errors over the run are the most useful plot.
  const usual = comparison.mode === "tensor" && node?.match !== "none" ? "hist" : "order";
  const tab = address.tab ?? usual;
  const tensors = useMemo(() => tensorPairs(node), [node]);
  const about = OF_TENSOR.has(tab);
  const pair = about ? (tensors.find((one) => itemPath(one) === address.item) ?? worst(tensors)) : undefined;
  const query = figureQuery(address, tab, selected, pair?.id ?? null);
  const figure = useFigure(comparison.id, node ? unit : null, query);
  usePlotly(isDrawn(tab, comparison.mode === "tensor"));
  const [values, setValues] = useState<Values | null>(null);
  const moveTo = useCallback((at: number[], keep: boolean) => update({ at }, keep), [update]);
  const shape = commonShape(pair?.target_leaf?.shape ?? null, pair?.golden_leaf?.shape ?? null);
  const words = { call: selected, item: pair ? itemPath(pair) : "", step: unit?.step, rank: unit?.rank };
  const title = [
    t(pair ? "evidence.plotName" : "evidence.plotNameCall", words),
    `${comparison.target_name} ⇄ ${comparison.golden_name}`,
  ];
  const file = `${selected ?? "call"} ${t(`evidence.plot.${tab}`)}`;
  const showCell = async (down: Range, across: Range) => {
    const axes = drawnAxes(figure);
    if (!pair || !axes) return;
    try {
      const worstPair = await fetchWorst(comparison.id, pair.id, partOf(axes, down, across));
      if (worstPair) update({ ...toPlot(address, "values"), item: itemPath(pair), axes, at: worstPair });
    } catch (problem) {
      say(describeProblem(problem).detail);
    }
  };
  const drawn = figure.data?.figure != null;
  const ready = query !== null && drawn && !figure.isPlaceholderData;
  const fields = (
    <>
      {about && tensors.length > 1 && pair && (
        <TensorField tensors={tensors.map(itemPath)} shown={itemPath(pair)} onShow={(item) => update({ item })} />
      )}
      {(tab === "map" ? ready : values !== null && tab === "values") && shape.length > 2 && (
        <AxisFields
          shape={shape}
          axes={tab === "map" ? (drawnAxes(figure) ?? address.axes) : (values?.axes ?? address.axes)}
          onChange={(axes) => update({ axes })}
        />
      )}
      {tab === "map" && drawn && <ReduceField rms={address.rms} onChange={(rms) => update({ rms }, true)} />}
      {tab === "hist" && drawn && (
        <Checkbox
          label={t("evidence.ecdf")}
          title={t("evidence.ecdfHint")}
          checked={address.ecdf}
          onChange={(event) => update({ ecdf: event.currentTarget.checked }, true)}
          data-testid="plot-ecdf"
        />
      )}
    </>
  );
  const save =
    query === null ? (
      values && (
        <Menu.Item onClick={() => saveValues(file, values)} data-testid="plot-csv">
          CSV
        </Menu.Item>
      )
    ) : ready ? (
      <FigureFiles box={box} file={file} title={title} csv={figureCsvUrl(comparison.id, unit, query)} />
    ) : null;
  return (
    <PlotFrame
      tabs={<ChosenTab usual={usual} />}
      fields={fields}
      log={
        query !== null && drawn
          ? { checked: address.log ?? figure.data?.log ?? false, onChange: (log) => update({ log }, true) }
          : null
      }
      save={save}
      large={stage}
      onLarge={(large) => update({ tab, stage: large ? "plot" : null })}
      stage={stage}
    >
      <Behind tab={tab} usual={usual}>
        {query === null && node && pair && (
          <ChosenValues
            key={`${pair.id}/${address.axes?.join() ?? ""}`}
            comparison={comparison.id}
            pair={pair.id}
            axes={address.axes}
            large={stage}
            onMove={moveTo}
            onShown={setValues}
          />
        )}
        {query === null && node && !pair && <p className={classes.missing}>{t("evidence.noTensors")}</p>}
        {query !== null && (
          <FigureBox
            figure={figure}
            box={box}
            label={t(`evidence.plotHint.${tab}`)}
            name={[tab, node?.name, unit?.step, unit?.rank, pair?.id].join("/")}
            title={stage ? title : undefined}
            list={tab === "apis"}
            onPick={(order) => void selectByOrder(order)}
            onCell={tab === "map" ? (down, across) => void showCell(down, across) : undefined}
          />
        )}
      </Behind>
    </PlotFrame>
  );
}

/** The tab follows each key; what is below it comes when it is read. usual: shown while none is chosen */
function ChosenTab({ usual }: { usual: PlotTab }) {
  const { t, language } = useTranslation();
  const { address, update } = useSelectionNow();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the language decides what t returns
  const plots = useMemo(
    () => PLOTS.map((id) => ({ id, label: t(`evidence.plot.${id}`), hint: t(`evidence.plotHint.${id}`) })),
    [language],
  );
  const show = useCallback((tab: PlotTab) => update(toPlot(currentAddress(), tab)), [update]);
  return <PlotTabs plots={plots} shown={address.tab ?? usual} onShow={show} />;
}

/** Fades while another plot is chosen. */
function Behind({ tab, usual, children }: { tab: PlotTab; usual: PlotTab; children: ReactNode }) {
  const behind = (useSelectionNow().address.tab ?? usual) !== tab;
  return (
    <div className={behind ? `${classes.place} ${classes.behind}` : classes.place} aria-busy={behind}>
      {children}
    </div>
  );
}

/** The next key moves on from the element that is selected now. */
function ChosenValues(props: Omit<ComponentProps<typeof ValueWindow>, "at">) {
  const [now, shown] = [useSelectionNow(), useSelection()];
  return <ValueWindow {...props} at={(now.selected === shown.selected ? now : shown).address.at} />;
}

function saveValues(file: string, { rows, at, axes, row, column }: Values): void {
  if (at) downloadText(`${file}.csv`, writeCsv(rows, at, axes, row, column), "text/csv");
}

function tensorPairs(node: NodeDetail | undefined): Pair[] {
  return (node?.items ?? []).filter((pair) => (pair.target_leaf ?? pair.golden_leaf)?.shape != null);
}

/** The output with the largest error, else the tensor with the largest error. */
function worst(pairs: readonly Pair[]): Pair | undefined {
  const outputs = pairs.filter((pair) => pair.role === "output" || pair.role === "parameters_grad");
  const score = (pair: Pair) => {
    const number = toNumber(pair.score) ?? -1;
    return Number.isNaN(number) ? Number.POSITIVE_INFINITY : number;
  };
  return [...(outputs.length > 0 ? outputs : pairs)].sort((a, b) => score(b) - score(a))[0];
}

/** `output.0`: how the address and the reader name a tensor of a call. */
function itemPath(pair: Pair): string {
  const path = (pair.target_leaf ?? pair.golden_leaf)?.path ?? "";
  return path ? `${pair.role}.${path}` : pair.role;
}
