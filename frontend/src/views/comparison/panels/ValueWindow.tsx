/** Single values of a tensor pair around its worst element, or around any other. */
import { Button, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import { useValues } from "../../../api/comparison/figures";
import type { Values } from "../../../api/types";
import { commonShape, findInWindow, formatValue, parseIndex } from "../../../base/numbers/tensorValues";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure, Loading } from "../../../widgets/basic/States";
import { ValueGrid } from "../../../widgets/tensors/ValueGrid";
import classes from "./Plots.module.css";

interface ValueWindowProps {
  comparison: string;
  pair: number;
  axes: readonly number[] | null;
  at: readonly number[] | null;
  large: boolean;
  onMove: (at: number[], keep: boolean) => void;
  /** What is shown now, for the file. */
  onShown: (values: Values | null) => void;
}

export function ValueWindow({ comparison, pair, axes, at: asked, large, onMove, onShown }: ValueWindowProps) {
  const { t } = useTranslation();
  const size = large ? { rows: 15, columns: 9 } : { rows: 7, columns: 5 };
  const [anchor, setAnchor] = useState(asked);
  const opening = useValues(comparison, { pair, at: null, axes, ...size });
  const around = useValues(comparison, anchor === null ? null : { pair, at: anchor, axes, ...size });
  const shown = anchor === null ? opening : around;
  const values = shown.data;
  const at = asked ?? opening.data?.at ?? null;
  const place = values && at ? findInWindow(values, at) : null;
  const fresh = values !== undefined && !shown.isPlaceholderData;
  // A window is asked for only when the element looked at leaves the one that is there.
  useEffect(() => {
    if (fresh && at !== null && place === null) setAnchor([...at]);
  }, [fresh, at, place]);
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
      <IndexForm values={opening.data} at={at} onMove={onMove} />
      {problem && <Failure problem={problem} onRetry={() => void (opening.error ? opening : around).refetch()} />}
      {!values && !problem && <Loading />}
      {values?.missing && <p className={classes.missing}>{say(values.missing, values.said)}</p>}
      {values && !values.missing && at && (
        <>
          <ValueGrid
            values={values}
            at={at}
            onMove={(next) => onMove(next, true)}
            label={t("evidence.plotHint.values")}
          />
          <p className={classes.words} aria-live="polite" data-testid="value-words">
            {cell &&
              t(cell.equal ? "evidence.values.equal" : "evidence.values.here", {
                index: at.join(", "),
                target: formatValue(cell.target),
                golden: formatValue(cell.golden),
                difference: formatValue(cell.difference),
              })}{" "}
            {describe(values)}
          </p>
        </>
      )}
    </div>
  );
}

interface IndexFormProps {
  values: Values | undefined;
  at: readonly number[] | null;
  onMove: ValueWindowProps["onMove"];
}

const PLACES = ["worst", "first", "lost"] as const;

/** Where to look: the places worth it, or an index that is typed. */
function IndexForm({ values, at, onMove }: IndexFormProps) {
  const { t } = useTranslation();
  const written = at?.join(", ") ?? "";
  const [text, setText] = useState(written);
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    setText(written);
    setWrong(false);
  }, [written]);
  if (!values || values.missing) return null;
  const shape = commonShape(values.target_shape, values.golden_shape);
  const go = (event: FormEvent) => {
    event.preventDefault();
    const index = parseIndex(text, shape);
    setWrong(index === null);
    if (index) onMove(index, false);
  };
  return (
    <form className={classes.controls} onSubmit={go}>
      {PLACES.map((name) => {
        const index = values.places?.[name];
        return index ? (
          <Button
            key={name}
            size="compact-xs"
            variant="default"
            aria-pressed={index.join() === at?.join()}
            title={`[${index.join(", ")}]`}
            onClick={() => onMove(index, false)}
            data-testid={`value-${name}`}
          >
            {t(`evidence.values.${name}`)}
          </Button>
        ) : null;
      })}
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

/** `torch.bfloat16 [3, 4]`, of both sides where they differ. */
function describe(values: Values): string {
  const side = (dtype: string | null, shape: readonly number[] | null) =>
    dtype === null ? "—" : `${dtype.replace("torch.", "")} [${(shape ?? []).join(", ")}]`;
  const target = side(values.target_dtype, values.target_shape);
  const golden = side(values.golden_dtype, values.golden_shape);
  return target === golden ? target : `${target} / ${golden}`;
}
