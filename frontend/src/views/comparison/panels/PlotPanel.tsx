import { ActionIcon, Checkbox, Menu, Select, Tabs, Tooltip } from "@mantine/core";
import { useCallback, useMemo, useRef, useState } from "react";
import { type FigureQuery, fetchWorst, figureCsvUrl, useFigure } from "../../../api/comparison/figures";
import type { NodeDetail, Pair, Values } from "../../../api/types";
import { PLOTS, type PlotTab, toPlot } from "../../../base/address/address";
import { toNumber } from "../../../base/numbers/format";
import { commonShape, writeCsv } from "../../../base/numbers/tensorValues";
import { useTranslation } from "../../../texts/useTranslation";
import { downloadText } from "../../../widgets/basic/download";
import { Icon } from "../../../widgets/basic/Icon";
import { describeProblem, Failure, Loading } from "../../../widgets/basic/States";
import { Figure, type Range, savePlot } from "../../../widgets/tensors/Figure";
import { useSay } from "../selection/notice";
import { useShownComparison } from "../selection/result";
import { useSelectedCall, useSelection } from "../selection/SelectionProvider";
import { useSelectByOrder } from "../selection/useCallWalk";
import evidence from "./EvidencePanel.module.css";
import classes from "./Plots.module.css";
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

interface PlotPanelProps {
  large: boolean;
  onLarge: (large: boolean) => void;
}

/** Pictures of the selected call, of one of its tensors, and of the run around it. */
export function PlotPanel({ large, onLarge }: PlotPanelProps) {
  const { t } = useTranslation();
  const say = useSay();
  const comparison = useShownComparison();
  const { address, update, selected, unit } = useSelection();
  const { node } = useSelectedCall();
  const selectByOrder = useSelectByOrder();
  const box = useRef<HTMLDivElement>(null);
  // Histograms need tensors of both sides; without them the errors over the run are the most useful plot.
  const tab = address.tab ?? (comparison.mode === "tensor" && node?.match !== "none" ? "hist" : "order");
  const tensors = useMemo(() => tensorPairs(node), [node]);
  const about = OF_TENSOR.has(tab);
  const pair = about ? (tensors.find((one) => itemPath(one) === address.item) ?? worst(tensors)) : undefined;
  const name = FIGURES[tab];
  const query: FigureQuery | null =
    name === null
      ? null
      : {
          name,
          node: selected,
          pair: pair?.id ?? null,
          log: address.log,
          axes: tab === "map" ? address.axes : null,
          reduce: address.rms ? "rms" : "max",
        };
  const figure = useFigure(comparison.id, node ? unit : null, query);
  const [values, setValues] = useState<Values | null>(null);
  const moveTo = useCallback((at: number[], keep: boolean) => update({ at }, keep), [update]);
  const shape = commonShape(pair?.target_leaf?.shape ?? null, pair?.golden_leaf?.shape ?? null);
  const file = `${selected ?? "call"} ${t(`evidence.plot.${tab}`)}`;
  const showCell = async (down: Range, across: Range) => {
    const axes = drawnAxes(figure.data?.figure);
    if (!pair || !axes) return;
    const ranges = axes.length > 1 ? [down, across] : [across];
    const part = axes.map((axis, index) => [axis, ...(ranges[index] ?? across)] as const);
    try {
      const worstPair = await fetchWorst(comparison.id, pair.id, part);
      if (worstPair) update({ ...toPlot(address, "values"), item: itemPath(pair), axes, at: worstPair });
    } catch (problem) {
      say(describeProblem(problem).detail);
    }
  };
  const ready = query !== null && figure.data?.figure != null && !figure.isPlaceholderData;
  return (
    <>
      <div className={classes.head}>
        <Tabs
          className={classes.tabs}
          value={tab}
          onChange={(next) => next && update(toPlot(address, next as PlotTab))}
          variant="pills"
        >
          <Tabs.List aria-label={t("evidence.plots")}>
            {PLOTS.map((one, index) => (
              <Tabs.Tab
                key={one}
                value={one}
                px={5}
                py={2}
                fz={12}
                title={`${t(`evidence.plotHint.${one}`)} (${index + 1})`}
                data-testid={`plot-${one}`}
              >
                {t(`evidence.plot.${one}`)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
        </Tabs>
        <div className={classes.tools}>
          {about && tensors.length > 1 && pair && (
            <Select
              aria-label={t("evidence.plotItem")}
              data-testid="plot-item"
              w={104}
              allowDeselect={false}
              data={tensors.map((one) => ({ value: itemPath(one), label: itemPath(one) }))}
              value={itemPath(pair)}
              onChange={(item) => update({ item })}
              comboboxProps={{ width: 320, position: "bottom-end" }}
            />
          )}
          {(tab === "map" ? ready : values !== null && tab === "values") && shape.length > 2 && (
            <AxisPickers
              shape={shape}
              axes={tab === "map" ? (drawnAxes(figure.data?.figure) ?? address.axes) : (values?.axes ?? address.axes)}
              onChange={(axes) => update({ axes })}
            />
          )}
          {tab === "map" && figure.data?.figure && (
            <Select
              aria-label={t("evidence.reduce")}
              data-testid="plot-reduce"
              w={84}
              allowDeselect={false}
              data={[
                { value: "max", label: t("evidence.reduceMax") },
                { value: "rms", label: t("evidence.reduceRms") },
              ]}
              value={address.rms ? "rms" : "max"}
              onChange={(reduce) => update({ rms: reduce === "rms" }, true)}
            />
          )}
          <div className={classes.ends}>
            {tab !== "values" && figure.data?.figure && (
              <Checkbox
                label={t("evidence.log")}
                title={t("evidence.logHint")}
                checked={address.log ?? figure.data?.log ?? false}
                onChange={(event) => update({ log: event.currentTarget.checked }, true)}
                data-testid="plot-log"
              />
            )}
            <Menu position="bottom-end">
              <Menu.Target>
                <Tooltip label={t("evidence.plotSave")}>
                  <ActionIcon
                    size="sm"
                    aria-label={t("evidence.plotSave")}
                    disabled={tab === "values" ? values === null : !ready}
                    data-testid="plot-save"
                  >
                    <Icon name="save" size={13} />
                  </ActionIcon>
                </Tooltip>
              </Menu.Target>
              <Menu.Dropdown>
                {query !== null ? (
                  <>
                    <Menu.Item onClick={() => void savePlot(box.current, file)} data-testid="plot-png">
                      PNG
                    </Menu.Item>
                    <Menu.Item
                      component="a"
                      href={figureCsvUrl(comparison.id, unit, query)}
                      download
                      data-testid="plot-csv"
                    >
                      CSV
                    </Menu.Item>
                  </>
                ) : (
                  <Menu.Item onClick={() => values && saveValues(file, values)} data-testid="plot-csv">
                    CSV
                  </Menu.Item>
                )}
              </Menu.Dropdown>
            </Menu>
            <Tooltip label={t(large ? "evidence.plotSmaller" : "evidence.plotLarger")}>
              <ActionIcon
                className={evidence.resize}
                size="sm"
                aria-label={t("evidence.plotLarger")}
                aria-pressed={large}
                onClick={() => onLarge(!large)}
                data-testid="plot-large"
              >
                <Icon name="chevron" size={12} turn={large ? 90 : -90} />
              </ActionIcon>
            </Tooltip>
          </div>
        </div>
      </div>
      {query === null && node && pair && (
        <ValueWindow
          key={`${pair.id}/${address.axes?.join() ?? ""}`}
          comparison={comparison.id}
          pair={pair.id}
          axes={address.axes}
          at={address.at}
          large={large}
          onMove={moveTo}
          onShown={setValues}
        />
      )}
      {query === null && node && !pair && <p className={classes.missing}>{t("evidence.noTensors")}</p>}
      {query !== null && figure.error && <Failure problem={figure.error} onRetry={() => void figure.refetch()} />}
      {query !== null && !figure.data && !figure.error && <Loading />}
      {query !== null && figure.data && !figure.error && (
        <div
          ref={box}
          className={[figure.isPlaceholderData && classes.busy, tab === "apis" && classes.list]
            .filter(Boolean)
            .join(" ")}
          aria-busy={figure.isPlaceholderData}
        >
          <Figure
            reply={figure.data}
            label={t(`evidence.plotHint.${tab}`)}
            name={[tab, node?.name, unit?.step, unit?.rank, pair?.id, figure.data.log].join("/")}
            onPick={(order) => void selectByOrder(order)}
            onCell={tab === "map" ? (down, across) => void showCell(down, across) : undefined}
          />
        </div>
      )}
    </>
  );
}

interface AxisPickersProps {
  shape: readonly number[];
  axes: readonly number[] | null;
  onChange: (axes: number[]) => void;
}

/** Which dimension goes down and which across; choosing one that is taken swaps the two. */
function AxisPickers({ shape, axes, onChange }: AxisPickersProps) {
  const { t } = useTranslation();
  const [down, across] = axes?.length === 2 ? axes : [shape.length - 2, shape.length - 1];
  const options = shape.map((size, axis) => ({ value: String(axis), label: `dim ${axis} · ${size}` }));
  const pick = (place: 0 | 1) => (value: string | null) => {
    const axis = Number(value);
    const next = place === 0 ? [axis, axis === across ? down : across] : [axis === down ? across : down, axis];
    onChange(next as number[]);
  };
  return (
    <>
      {([down, across] as const).map((axis, place) => (
        <Select
          key={place === 0 ? "down" : "across"}
          aria-label={t(place === 0 ? "evidence.axisDown" : "evidence.axisAcross")}
          title={t(place === 0 ? "evidence.axisDown" : "evidence.axisAcross")}
          leftSection={place === 0 ? "↓" : "→"}
          leftSectionWidth={20}
          data-testid={place === 0 ? "axis-down" : "axis-across"}
          w={108}
          allowDeselect={false}
          data={options}
          value={String(axis)}
          onChange={pick(place as 0 | 1)}
        />
      ))}
    </>
  );
}

/** The dimensions that the server chose for a map. */
function drawnAxes(figure: unknown): number[] | null {
  const layout = (figure as { layout?: { meta?: { axes?: number[] } } } | null | undefined)?.layout;
  return layout?.meta?.axes ?? null;
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
