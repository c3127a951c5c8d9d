import { Menu } from "@mantine/core";
import { useCallback, useRef, useState } from "react";
import { type DumpFigureQuery, dumpFigureCsvUrl, fetchLargest, useDumpFigure } from "../../../api/dump/figures";
import { fetchDumpNodes } from "../../../api/dump/nodes";
import type { Unit } from "../../../api/records";
import type { DumpLeaf, DumpNode, TensorValues } from "../../../api/types";
import { DUMP_PLOTS, type DumpPlotTab, MEASURES, type Measure, toPlot } from "../../../base/address/address";
import { writeLines } from "../../../base/numbers/tensorValues";
import { useTranslation } from "../../../texts/useTranslation";
import { downloadText } from "../../../widgets/basic/download";
import { useAddress } from "../../../widgets/basic/navigation";
import { describeProblem } from "../../../widgets/basic/States";
import type { Range } from "../../../widgets/plots/Figure";
import { type AskedFigure, drawnAxes, FigureBox, FigureFiles, partOf } from "../../../widgets/plots/FigureBox";
import { AxisFields, PlotFrame, ReduceField, TensorField } from "../../../widgets/plots/PlotFrame";
import classes from "../../../widgets/plots/Plots.module.css";
import { PlotTabs } from "../../../widgets/plots/PlotTabs";
import { ChoiceField } from "../../../widgets/tensors/TrendControls";
import { DumpValues } from "./DumpValues";

/** Names of the figures on the server; values are no figure. */
const FIGURES: Record<DumpPlotTab, string | null> = {
  hist: "histogram",
  map: "value-map",
  values: null,
  order: "value-order",
  apis: "api-values",
};

/** Plots about one tensor of the call. */
const OF_TENSOR: ReadonlySet<DumpPlotTab> = new Set(["hist", "map", "values"]);

interface DumpPlotsProps {
  id: string;
  unit: Unit;
  node: DumpNode;
  large: boolean;
  onLarge: (large: boolean) => void;
  onSelect: (name: string) => void;
  onSay: (words: string) => void;
}

/** Pictures of a tensor of the selected call, and of the run around it. */
export function DumpPlots({ id, unit, node, large, onLarge, onSelect, onSay }: DumpPlotsProps) {
  const { t } = useTranslation();
  const [address, update] = useAddress();
  const box = useRef<HTMLDivElement>(null);
  const tensors = node.items.filter((leaf) => leaf.shape !== null);
  // Without its numbers a tensor shows little; the run around the call then shows more.
  const usual = tensors.some((leaf) => leaf.data_name !== null) ? "hist" : "order";
  const tab = DUMP_PLOTS.find((one) => one === address.tab) ?? usual;
  const about = OF_TENSOR.has(tab);
  const tensor = about ? (tensors.find((leaf) => tensorPath(leaf) === address.item) ?? telling(tensors)) : undefined;
  const name = FIGURES[tab];
  const query: DumpFigureQuery | null =
    name === null
      ? null
      : {
          name,
          node: node.name,
          item: tensor?.id ?? null,
          log: address.log,
          axes: tab === "map" ? address.axes : null,
          reduce: tab === "map" && address.rms ? "rms" : "max",
          measure: about ? null : address.measure,
        };
  const figure = useDumpFigure(id, unit, query);
  const [values, setValues] = useState<TensorValues | null>(null);
  const moveTo = useCallback((at: number[], keep: boolean) => update({ at }, keep), [update]);
  const shape = tensor?.shape ?? [];
  const file = `${node.name} ${t(`evidence.plot.${tab}`)}`;
  const drawn = figure.data?.figure != null;
  const ready = query !== null && drawn && !figure.isPlaceholderData;
  const measure = address.measure ?? drawnMeasure(figure);

  const pick = async (place: number) => {
    const found = await fetchDumpNodes(id, unit, "", { at: place, limit: 1 }, new AbortController().signal);
    const row = found.items[0];
    if (row) onSelect(row.name);
  };
  const showCell = async (down: Range, across: Range) => {
    const axes = drawnAxes(figure);
    if (!tensor || !axes) return;
    try {
      const at = await fetchLargest(id, unit, tensor.id, partOf(axes, down, across));
      if (at) update({ ...toPlot(address, "values"), item: tensorPath(tensor), axes, at });
    } catch (problem) {
      onSay(describeProblem(problem).detail);
    }
  };
  const fields = (
    <>
      {about && tensors.length > 1 && tensor && (
        <TensorField tensors={tensors.map(tensorPath)} shown={tensorPath(tensor)} onShow={(item) => update({ item })} />
      )}
      {(tab === "map" ? ready : values !== null && tab === "values") && shape.length > 2 && (
        <AxisFields
          shape={shape}
          axes={tab === "map" ? (drawnAxes(figure) ?? address.axes) : (values?.axes ?? address.axes)}
          onChange={(axes) => update({ axes })}
        />
      )}
      {tab === "map" && drawn && <ReduceField rms={address.rms} onChange={(rms) => update({ rms }, true)} />}
      {!about && measure !== null && (
        <ChoiceField
          label={t("dump.measure")}
          testId="plot-measure"
          width={104}
          value={measure}
          values={MEASURES.map((value) => ({
            value,
            label: t(value === "norm" ? "dump.columns.norm" : "dump.columns.largest"),
          }))}
          onChange={(next) => update({ measure: next }, true)}
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
      <FigureFiles box={box} file={file} title={[node.name]} csv={dumpFigureCsvUrl(id, unit, query)} />
    ) : null;
  return (
    <PlotFrame
      tabs={
        <PlotTabs
          plots={DUMP_PLOTS.map((one) => ({
            id: one,
            label: t(`evidence.plot.${one}`),
            hint: t(`dump.plotHint.${one}`),
          }))}
          shown={tab}
          onShow={(next) => update(toPlot(address, next))}
        />
      }
      fields={fields}
      log={
        query !== null && drawn && hasScale(figure)
          ? { checked: address.log ?? figure.data?.log ?? false, onChange: (log) => update({ log }, true) }
          : null
      }
      save={save}
      large={large}
      onLarge={onLarge}
    >
      {about && !tensor ? (
        <p className={classes.missing}>{t("evidence.noTensors")}</p>
      ) : query === null && tensor ? (
        <DumpValues
          key={`${tensor.id}/${address.axes?.join() ?? ""}`}
          id={id}
          unit={unit}
          item={tensor.id}
          axes={address.axes}
          at={address.at}
          large={large}
          onMove={moveTo}
          onShown={setValues}
        />
      ) : (
        <FigureBox
          figure={figure}
          box={box}
          label={t(`dump.plotHint.${tab}`)}
          name={[tab, node.name, unit.step, unit.rank, tensor?.id, measure].join("/")}
          list={tab === "apis"}
          onPick={(place) => void pick(place)}
          onCell={tab === "map" ? (down, across) => void showCell(down, across) : undefined}
        />
      )}
    </PlotFrame>
  );
}

interface Layout {
  meta?: { measure?: Measure; scale?: boolean };
}

function layoutOf(figure: AskedFigure): Layout | undefined {
  return (figure.data?.figure as { layout?: Layout } | null | undefined)?.layout;
}

/** What a drawn plot of the run shows of the outputs. */
function drawnMeasure(figure: AskedFigure): Measure | null {
  return layoutOf(figure)?.meta?.measure ?? null;
}

/** Statistics alone have no counts, and so no scale to choose. */
function hasScale(figure: AskedFigure): boolean {
  return layoutOf(figure)?.meta?.scale !== false;
}

function saveValues(file: string, { rows, at, axes, row, column }: TensorValues): void {
  const texts = rows.map((cells) => cells.map((text) => [text]));
  if (at) downloadText(`${file}.csv`, writeLines(["value"], texts, at, axes, row, column), "text/csv");
}

const OUTPUTS: ReadonlySet<string> = new Set(["output", "parameters_grad", "debug"]);

/** The tensor worth a look first: an output whose numbers were dumped, else one whose were, else an output. */
function telling(tensors: readonly DumpLeaf[]): DumpLeaf | undefined {
  const weight = (leaf: DumpLeaf) => (leaf.data_name !== null ? 2 : 0) + (OUTPUTS.has(leaf.role) ? 1 : 0);
  return [...tensors].sort((one, other) => weight(other) - weight(one))[0];
}

/** `output.0`: how the address and the reader name a tensor of a call. */
function tensorPath(leaf: DumpLeaf): string {
  return leaf.path ? `${leaf.role}.${leaf.path}` : leaf.role;
}
