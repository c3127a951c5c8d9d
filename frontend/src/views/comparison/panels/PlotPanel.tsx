import { ActionIcon, Checkbox, Menu, Popover, Select, Tooltip } from "@mantine/core";
import { useCallback, useMemo, useRef, useState } from "react";
import { type FigureQuery, fetchWorst, figureCsvUrl, useFigure } from "../../../api/comparison/figures";
import type { NodeDetail, Pair, Values } from "../../../api/types";
import { type PlotTab, toPlot } from "../../../base/address/address";
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
import classes from "./Plots.module.css";
import { PlotTabs } from "./PlotTabs";
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
          ecdf: tab === "hist" && address.ecdf,
        };
  const figure = useFigure(comparison.id, node ? unit : null, query);
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
  // A click in a list outside of what is open would close it.
  const inside = { withinPortal: stage };
  const settings = (
    <>
      {about && tensors.length > 1 && pair && (
        <Select
          aria-label={t("evidence.plotItem")}
          data-testid="plot-item"
          w={104}
          allowDeselect={false}
          data={tensors.map((one) => ({ value: itemPath(one), label: itemPath(one) }))}
          value={itemPath(pair)}
          onChange={(item) => update({ item })}
          comboboxProps={{ ...inside, width: stage ? 320 : 260, position: "bottom-end" }}
        />
      )}
      {(tab === "map" ? ready : values !== null && tab === "values") && shape.length > 2 && (
        <AxisPickers
          inside={inside}
          shape={shape}
          axes={tab === "map" ? (drawnAxes(figure.data?.figure) ?? address.axes) : (values?.axes ?? address.axes)}
          onChange={(axes) => update({ axes })}
        />
      )}
      {tab === "map" && figure.data?.figure && (
        <Select
          aria-label={t("evidence.reduce")}
          data-testid="plot-reduce"
          comboboxProps={inside}
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
      {tab === "hist" && (
        <Checkbox
          label={t("evidence.ecdf")}
          title={t("evidence.ecdfHint")}
          checked={address.ecdf}
          onChange={(event) => update({ ecdf: event.currentTarget.checked }, true)}
          data-testid="plot-ecdf"
        />
      )}
      {tab !== "values" && figure.data?.figure && (
        <Checkbox
          label={t("evidence.log")}
          title={t("evidence.logHint")}
          checked={address.log ?? figure.data?.log ?? false}
          onChange={(event) => update({ log: event.currentTarget.checked }, true)}
          data-testid="plot-log"
        />
      )}
    </>
  );
  return (
    <>
      <div className={classes.head}>
        <PlotTabs tab={tab} onTab={(next) => update(toPlot(address, next))} />
        <div className={classes.tools}>
          {stage ? (
            settings
          ) : (
            <Popover position="bottom-end" withinPortal>
              <Popover.Target>
                <Tooltip label={t("evidence.plotSettings")}>
                  <ActionIcon size="sm" aria-label={t("evidence.plotSettings")} data-testid="plot-settings">
                    <Icon name="settings" size={13} />
                  </ActionIcon>
                </Tooltip>
              </Popover.Target>
              <Popover.Dropdown
                className={classes.settings}
                aria-label={t("evidence.plotSettings")}
                onKeyDown={(event) => event.key === "Escape" && event.preventDefault()} // it closes this and nothing else
              >
                {settings}
              </Popover.Dropdown>
            </Popover>
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
                  {(["png", "svg"] as const).map((format) => (
                    <Menu.Item
                      key={format}
                      onClick={() => void savePlot(box.current, file, format, title)}
                      data-testid={`plot-${format}`}
                    >
                      {format.toUpperCase()}
                    </Menu.Item>
                  ))}
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
          <Tooltip label={t(stage ? "evidence.plotSmaller" : "evidence.plotLarger")}>
            <ActionIcon
              size="sm"
              aria-label={t("evidence.plotLarger")}
              aria-pressed={stage}
              onClick={() => update({ tab, stage: stage ? null : "plot" })}
              data-testid="plot-large"
            >
              <Icon name={stage ? "close" : "enlarge"} size={12} />
            </ActionIcon>
          </Tooltip>
        </div>
      </div>
      {query === null && node && pair && (
        <ValueWindow
          key={`${pair.id}/${address.axes?.join() ?? ""}`}
          comparison={comparison.id}
          pair={pair.id}
          axes={address.axes}
          at={address.at}
          large={stage}
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
          className={[classes.figure, figure.isPlaceholderData && classes.busy, tab === "apis" && classes.list]
            .filter(Boolean)
            .join(" ")}
          aria-busy={figure.isPlaceholderData}
        >
          <Figure
            reply={figure.data}
            label={t(`evidence.plotHint.${tab}`)}
            title={stage ? title : undefined}
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
  inside: { withinPortal: boolean };
  shape: readonly number[];
  axes: readonly number[] | null;
  onChange: (axes: number[]) => void;
}

/** Which dimension goes down and which across; choosing one that is taken swaps the two. */
function AxisPickers({ inside, shape, axes, onChange }: AxisPickersProps) {
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
          comboboxProps={inside}
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
