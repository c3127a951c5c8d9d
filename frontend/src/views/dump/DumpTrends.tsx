import { Modal } from "@mantine/core";
import { useState } from "react";
import { useDumpTrends } from "../../api/trends";
import { useTranslation } from "../../texts/useTranslation";
import { useAddress } from "../../widgets/basic/navigation";
import { useDebounced } from "../../widgets/basic/useDebounced";
import { useStatisticChoice } from "../../widgets/tensors/TrendControls";
import { TrendPanel } from "../../widgets/tensors/TrendPanel";
import classes from "./Trends.module.css";
import { ValueTable } from "./ValueTable";

/** Modules of one dump over its steps and ranks. */
export function DumpTrends({ id, opened }: { id: string; opened: boolean }) {
  const { t } = useTranslation();
  const [, update] = useAddress();
  return (
    <Modal
      opened={opened}
      onClose={() => update({ dialog: null })}
      title={t("trends.title")}
      size="auto"
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      {opened && <Values id={id} />}
    </Modal>
  );
}

function Values({ id }: { id: string }) {
  const { t } = useTranslation();
  const { statistic, part, word, choices } = useStatisticChoice();
  const [text, setText] = useState("");
  const found = useDumpTrends(id, { statistic, part, q: useDebounced(text.trim(), 250) });
  return (
    <TrendPanel text={text} onText={setText} choices={choices} found={found}>
      {(first, rows) => (
        <>
          <ValueTable
            label={t("trends.title")}
            steps={first.steps}
            rows={rows}
            word={word}
            ranked={first.ranks.length > 1}
          />
          <p className={`${classes.legend} dim`}>{t("trends.legendValue")}</p>
        </>
      )}
    </TrendPanel>
  );
}
