import { Menu } from "@mantine/core";
import { type RefObject, useRef } from "react";
import type { FigureReply } from "../../api/types";
import { IN_FILE } from "../../base/inFile";
import { Failure, Loading } from "../basic/States";
import { Figure, type Range, savePlot } from "./Figure";
import classes from "./Plots.module.css";

/** What a request for a figure has come to. */
export interface AskedFigure {
  data: FigureReply | undefined;
  error: Error | null;
  /** The figure of before is shown until the next one is here. */
  isPlaceholderData: boolean;
  refetch: () => unknown;
}

interface FigureBoxProps {
  figure: AskedFigure;
  box: RefObject<HTMLDivElement | null>;
  label: string;
  /** Identity of the figure, but for its scale: another one is drawn without the zoom of the one before. */
  name: string;
  /** Lines that stand in the picture, above the plot. */
  title?: readonly string[] | undefined;
  /** A list that needs room for some lines. */
  list: boolean;
  onPick: (order: number) => void;
  onCell?: (down: Range, across: Range) => void;
}

/** A figure of the server, or its loading or failure. */
export function FigureBox({ figure, box, label, name, title, list, onPick, onCell }: FigureBoxProps) {
  // The figure of before keeps its words until the next one is here.
  const words = useRef({ label, name, title });
  if (!figure.isPlaceholderData) words.current = { label, name, title };
  if (figure.error) return <Failure problem={figure.error} onRetry={() => void figure.refetch()} />;
  if (!figure.data) return <Loading />;
  return (
    <div
      ref={box}
      className={[classes.figure, figure.isPlaceholderData && classes.busy, list && classes.list]
        .filter(Boolean)
        .join(" ")}
      aria-busy={figure.isPlaceholderData}
    >
      <Figure
        reply={figure.data}
        label={words.current.label}
        title={words.current.title}
        name={`${words.current.name}/${figure.data.log}`}
        onPick={onPick}
        onCell={onCell}
      />
    </div>
  );
}

interface FigureFilesProps {
  box: RefObject<HTMLDivElement | null>;
  /** Name of the file, without its ending. */
  file: string;
  /** Lines above the plot: what it is about. */
  title: readonly string[];
  csv: string;
}

/** A drawn figure as files. */
export function FigureFiles({ box, file, title, csv }: FigureFilesProps) {
  return (
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
      {!IN_FILE && (
        <Menu.Item component="a" href={csv} download data-testid="plot-csv">
          CSV
        </Menu.Item>
      )}
    </>
  );
}

/** The dimensions that the server chose for a map. */
export function drawnAxes(figure: AskedFigure): number[] | null {
  const drawn = figure.data?.figure as { layout?: { meta?: { axes?: number[] } } } | null | undefined;
  return drawn?.layout?.meta?.axes ?? null;
}

/** A clicked cell as a part of the tensor: dimension, first index and the one behind the last. */
export function partOf(axes: readonly number[], down: Range, across: Range): (readonly [number, number, number])[] {
  const ranges = axes.length > 1 ? [down, across] : [across];
  return axes.map((axis, index) => [axis, ...(ranges[index] ?? across)] as const);
}
