/** Numbers of a tensor, or of a pair, around an element: where to look, the grid, and the element in words. */
import { Button, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import { findInWindow, parseIndex, type ValueWindow } from "../../base/numbers/tensorValues";
import type { Phrase } from "../../base/text/phrases";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { Failure, Loading } from "../basic/States";
import classes from "./Plots.module.css";
import { type GridCell, ValueGrid } from "./ValueGrid";

/** Values as the server answers with them. */
export interface ShownValues<Cell> extends ValueWindow {
  rows: readonly (readonly Cell[])[];
  missing: string | null;
  said: readonly Phrase[];
}

export interface AskedValues<Values> {
  data: Values | undefined;
  error: Error | null;
  isPlaceholderData: boolean;
  refetch: () => unknown;
}

/** A place worth a look. */
export interface Place {
  id: string;
  label: string;
  index: readonly number[] | null | undefined;
}

/** Rows and columns of a window. */
export function windowSize(large: boolean): { rows: number; columns: number } {
  return large ? { rows: 15, columns: 9 } : { rows: 7, columns: 5 };
}

interface ValueBoxProps<Cell, Values extends ShownValues<Cell>> {
  /** The window that the server chose, and the one around `anchor`. */
  opening: AskedValues<Values>;
  around: AskedValues<Values>;
  anchor: readonly number[] | null;
  onAnchor: (at: number[]) => void;
  /** Element that is looked at; null: the one that the server chose. */
  at: readonly number[] | null;
  onMove: (at: number[], keep: boolean) => void;
  /** What is shown now, for the file. */
  onShown: (values: Values | null) => void;
  label: string;
  sides: readonly string[];
  shapeOf: (values: Values) => readonly number[];
  cellOf: (cell: Cell) => GridCell;
  placesOf: (values: Values) => readonly Place[];
  wordsOf: (cell: Cell, index: string) => string;
  describe: (values: Values) => string;
}

export function ValueBox<Cell, Values extends ShownValues<Cell>>(props: ValueBoxProps<Cell, Values>) {
  const { opening, around, anchor, onAnchor, at: asked, onMove, onShown, label, sides, shapeOf, cellOf } = props;
  const shown = anchor === null ? opening : around;
  const values = shown.data;
  const at = asked ?? opening.data?.at ?? null;
  const place = values && at ? findInWindow(values, at) : null;
  const fresh = values !== undefined && !shown.isPlaceholderData;
  // A window is asked for only when the element looked at leaves the one that is there.
  useEffect(() => {
    if (fresh && at !== null && place === null) onAnchor([...at]);
  }, [fresh, at, place, onAnchor]);
  useEffect(() => {
    onShown(fresh && values.missing === null ? values : null);
  }, [fresh, values, onShown]);

  const problem = opening.error ?? around.error;
  const cell = place && values ? values.rows[place[0]]?.[place[1]] : undefined;
  return (
    <div
      data-testid="values"
      className={shown.isPlaceholderData ? classes.busy : undefined}
      aria-busy={shown.isPlaceholderData}
    >
      {opening.data && opening.data.missing === null && (
        <IndexForm places={props.placesOf(opening.data)} shape={shapeOf(opening.data)} at={at} onMove={onMove} />
      )}
      {problem && <Failure problem={problem} onRetry={() => void (opening.error ? opening : around).refetch()} />}
      {!values && !problem && <Loading />}
      {values?.missing && <p className={classes.missing}>{say(values.missing, values.said)}</p>}
      {values && !values.missing && at && (
        <>
          <ValueGrid
            axes={values.axes}
            row={values.row}
            column={values.column}
            rows={values.rows.map((line) => line.map(cellOf))}
            shape={shapeOf(values)}
            sides={sides}
            at={at}
            onMove={(next) => onMove(next, true)}
            label={label}
          />
          <p className={classes.words} aria-live="polite" data-testid="value-words">
            {cell !== undefined && props.wordsOf(cell, at.join(", "))} {props.describe(values)}
          </p>
        </>
      )}
    </div>
  );
}

interface IndexFormProps {
  places: readonly Place[];
  shape: readonly number[];
  at: readonly number[] | null;
  onMove: (at: number[], keep: boolean) => void;
}

/** Where to look: the places worth it, or an index that is typed. */
function IndexForm({ places, shape, at, onMove }: IndexFormProps) {
  const { t } = useTranslation();
  const written = at?.join(", ") ?? "";
  const [text, setText] = useState(written);
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    setText(written);
    setWrong(false);
  }, [written]);
  const go = (event: FormEvent) => {
    event.preventDefault();
    const index = parseIndex(text, shape);
    setWrong(index === null);
    if (index) onMove(index, false);
  };
  return (
    <form className={classes.controls} onSubmit={go}>
      {places.map(({ id, label, index }) =>
        index ? (
          <Button
            key={id}
            size="compact-xs"
            variant="default"
            aria-pressed={index.join() === at?.join()}
            title={`[${index.join(", ")}]`}
            onClick={() => onMove([...index], false)}
            data-testid={`value-${id}`}
          >
            {label}
          </Button>
        ) : null,
      )}
      <TextInput
        w={128}
        ml="auto"
        aria-label={t("evidence.values.index", { shape: shape.join(" × ") })}
        title={t("evidence.values.index", { shape: shape.join(" × ") })}
        placeholder={shape.map(() => "0").join(", ")}
        error={wrong}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        data-testid="value-index"
      />
    </form>
  );
}
