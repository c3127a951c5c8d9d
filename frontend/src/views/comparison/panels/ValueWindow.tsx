/** Single values of a tensor pair around its worst element, or around any other. */
import { useState } from "react";
import { useValues } from "../../../api/comparison/figures";
import type { PairValue, Values } from "../../../api/types";
import { commonShape, formatValue } from "../../../base/numbers/tensorValues";
import { useTranslation } from "../../../texts/useTranslation";
import { ValueBox, windowSize } from "../../../widgets/plots/ValueBox";

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

const PLACES = ["worst", "first", "lost"] as const;

export function ValueWindow({ comparison, pair, axes, at, large, onMove, onShown }: ValueWindowProps) {
  const { t } = useTranslation();
  const size = windowSize(large);
  const [anchor, setAnchor] = useState(at);
  const opening = useValues(comparison, { pair, at: null, axes, ...size });
  const around = useValues(comparison, anchor === null ? null : { pair, at: anchor, axes, ...size });
  return (
    <ValueBox<PairValue, Values>
      opening={opening}
      around={around}
      anchor={anchor}
      onAnchor={setAnchor}
      at={at}
      onMove={onMove}
      onShown={onShown}
      label={t("evidence.plotHint.values")}
      sides={[t("evidence.values.targetShort"), t("evidence.values.goldenShort"), "Δ"]}
      shapeOf={(values) => commonShape(values.target_shape, values.golden_shape)}
      cellOf={(cell) => ({ lines: [cell.target, cell.golden, cell.difference], plain: cell.equal })}
      placesOf={({ places }) => PLACES.map((id) => ({ id, label: t(`evidence.values.${id}`), index: places?.[id] }))}
      wordsOf={(cell, index) =>
        t(cell.equal ? "evidence.values.equal" : "evidence.values.here", {
          index,
          target: formatValue(cell.target),
          golden: formatValue(cell.golden),
          difference: formatValue(cell.difference),
        })
      }
      describe={describe}
    />
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
