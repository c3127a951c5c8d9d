/** Single values of one tensor around its largest or first not finite element, or around any other. */
import { useState } from "react";
import { useDumpValues } from "../../../api/dump/figures";
import type { Unit } from "../../../api/records";
import type { TensorValues } from "../../../api/types";
import { formatValue } from "../../../base/numbers/tensorValues";
import { useTranslation } from "../../../texts/useTranslation";
import { ValueBox, windowSize } from "../../../widgets/plots/ValueBox";

interface DumpValuesProps {
  id: string;
  unit: Unit;
  item: number;
  axes: readonly number[] | null;
  at: readonly number[] | null;
  large: boolean;
  onMove: (at: number[], keep: boolean) => void;
  /** What is shown now, for the file. */
  onShown: (values: TensorValues | null) => void;
}

const PLACES = ["lost", "largest"] as const;

export function DumpValues({ id, unit, item, axes, at, large, onMove, onShown }: DumpValuesProps) {
  const { t } = useTranslation();
  const size = { rows: large ? 21 : 9, columns: windowSize(large).columns };
  const [anchor, setAnchor] = useState(at);
  const opening = useDumpValues(id, unit, { item, at: null, axes, ...size });
  const around = useDumpValues(id, unit, anchor === null ? null : { item, at: anchor, axes, ...size });
  return (
    <ValueBox<string | null, TensorValues>
      opening={opening}
      around={around}
      anchor={anchor}
      onAnchor={setAnchor}
      at={at}
      onMove={onMove}
      onShown={onShown}
      label={t("dump.plotHint.values")}
      sides={[]}
      shapeOf={({ shape }) => (shape?.length ? shape : [1])}
      cellOf={(text) => ({ lines: [text], plain: true })}
      placesOf={({ places }) =>
        PLACES.map((one) => ({ id: one, label: t(`dump.values.${one}`), index: places?.[one] }))
      }
      wordsOf={(text, index) => t("dump.values.here", { index, value: formatValue(text) })}
      describe={({ dtype, shape }) => `${(dtype ?? "").replace("torch.", "")} [${(shape ?? []).join(", ")}]`}
    />
  );
}
