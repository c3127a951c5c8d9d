import { Select } from "@mantine/core";
import { useState } from "react";
import { PARTS, type Part, STATISTICS, type Statistic } from "../../api/trends";
import { useTranslation } from "../../texts/useTranslation";

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  values: readonly { value: T; label: string }[];
  onChange: (value: T) => void;
  testId: string;
  width?: number;
}

/** One word out of a few. */
export function ChoiceField<T extends string>({ label, value, values, onChange, testId, width = 118 }: ChoiceProps<T>) {
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

/** Which statistic of which part of a call is shown, its name, and the two fields that choose it. */
export function useStatisticChoice() {
  const { t } = useTranslation();
  const words = useStatisticWords();
  const [statistic, setStatistic] = useState<Statistic>("norm");
  const [part, setPart] = useState<Part>("output");
  const choices = (
    <>
      <ChoiceField
        label={t("trends.show")}
        testId="trend-statistic"
        value={statistic}
        values={STATISTICS.map((word) => ({ value: word, label: words[word] }))}
        onChange={setStatistic}
      />
      <ChoiceField
        label={t("trends.part")}
        testId="trend-part"
        value={part}
        values={PARTS.map((word) => ({ value: word, label: t(`trends.parts.${word}`) }))}
        onChange={setPart}
      />
    </>
  );
  return { statistic, part, word: words[statistic], choices };
}
