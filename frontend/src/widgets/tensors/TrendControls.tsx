import { Select } from "@mantine/core";
import { useTranslation } from "react-i18next";

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  values: readonly { value: T; label: string }[];
  onChange: (value: T) => void;
  testId: string;
  width?: number;
}

/** One word out of a few. */
export function Choice<T extends string>({ label, value, values, onChange, testId, width = 118 }: ChoiceProps<T>) {
  return (
    <Select
      aria-label={label}
      data-testid={testId}
      size="xs"
      w={width}
      allowDeselect={false}
      data={values.map((one) => ({ value: one.value as string, label: one.label }))}
      value={value}
      onChange={(word) => word !== null && onChange(word as T)}
    />
  );
}

/** What the words of the statistics are called. */
export function useStatisticWords() {
  const { t } = useTranslation();
  return {
    norm: t("trends.statistics.norm"),
    max: t("trends.statistics.max"),
    min: t("trends.statistics.min"),
    mean: t("trends.statistics.mean"),
  };
}
