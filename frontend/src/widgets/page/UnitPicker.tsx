import { Select } from "@mantine/core";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./UnitPicker.module.css";

interface PickerProps {
  label: string;
  value: number | null;
  values: readonly number[];
  /** What stands behind numbers that hold an origin or a No. */
  glyphs?: ReadonlyMap<number, string>;
  onChange: (value: number) => void;
  testId: string;
}

function Picker({ label, value, values, glyphs, onChange, testId }: PickerProps) {
  if (values.length <= 1) {
    return (
      <span className={classes.single} data-testid={testId}>
        <span className="dim">{label}</span> <span>{value ?? "—"}</span>
      </span>
    );
  }
  return (
    <span className={classes.pick}>
      <span className="dim">{label}</span>
      <Select
        aria-label={label}
        data-testid={testId}
        size="xs"
        w={72}
        allowDeselect={false}
        searchable={values.length > 8}
        data={values.map((number) => ({
          value: String(number),
          label: [number, glyphs?.get(number)].filter((part) => part !== undefined).join(" "),
        }))}
        value={value === null ? null : String(value)}
        onChange={(text) => text !== null && onChange(Number(text))}
        comboboxProps={{ width: 110, position: "bottom-start" }}
      />
    </span>
  );
}

interface UnitPickerProps {
  step: number | null;
  rank: number | null;
  steps: readonly number[];
  ranks: readonly number[];
  stepGlyphs?: ReadonlyMap<number, string>;
  rankGlyphs?: ReadonlyMap<number, string>;
  onStep: (step: number) => void;
  onRank: (rank: number) => void;
}

export function UnitPicker({ step, rank, steps, ranks, stepGlyphs, rankGlyphs, onStep, onRank }: UnitPickerProps) {
  const { t } = useTranslation();
  return (
    <>
      <Picker label={t("unit.step")} value={step} values={steps} glyphs={stepGlyphs} onChange={onStep} testId="step" />
      <Picker label={t("unit.rank")} value={rank} values={ranks} glyphs={rankGlyphs} onChange={onRank} testId="rank" />
    </>
  );
}
