import { Button, Modal } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { PARTS, type Part, STATISTICS, type Statistic, useDumpTrends } from "../../api/trends";
import { formatCount } from "../../base/numbers/format";
import { useAddress } from "../../widgets/basic/navigation";
import { SearchField } from "../../widgets/basic/SearchField";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import { useDebounced } from "../../widgets/basic/useDebounced";
import { Choice, useStatisticWords } from "../../widgets/tensors/TrendControls";
import classes from "./Trends.module.css";
import { ValueTable } from "./ValueTable";

/** Modules of one dump over its steps and ranks. */
export function DumpTrends({ id }: { id: string }) {
  const { t } = useTranslation();
  const [address, update] = useAddress();
  return (
    <Modal
      opened={address.dialog === "trends"}
      onClose={() => update({ dialog: null })}
      title={t("trends.title")}
      size="auto"
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      {address.dialog === "trends" && <Values id={id} />}
    </Modal>
  );
}

function Values({ id }: { id: string }) {
  const { t } = useTranslation();
  const words = useStatisticWords();
  const [text, setText] = useState("");
  const [statistic, setStatistic] = useState<Statistic>("norm");
  const [part, setPart] = useState<Part>("output");
  const found = useDumpTrends(id, { statistic, part, q: useDebounced(text.trim(), 250) });
  const pages = found.data?.pages ?? [];
  const rows = pages.flatMap((page) => page.items);
  const [first] = pages;
  return (
    <div className={classes.map} data-testid="trends">
      <div className={classes.controls}>
        <SearchField
          data-autofocus
          label={t("trends.search")}
          placeholder={t("trends.search")}
          text={text}
          onText={setText}
        />
        <Choice
          label={t("trends.show")}
          testId="trend-statistic"
          value={statistic}
          values={STATISTICS.map((word) => ({ value: word, label: words[word] }))}
          onChange={setStatistic}
        />
        <Choice
          label={t("trends.part")}
          testId="trend-part"
          value={part}
          values={PARTS.map((word) => ({ value: word, label: t(`trends.parts.${word}`) }))}
          onChange={setPart}
        />
      </div>
      {found.error && <Failure problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {first && rows.length === 0 && <Empty>{t("trends.empty")}</Empty>}
      {first && rows.length > 0 && (
        <>
          <ValueTable
            label={t("trends.title")}
            steps={first.steps}
            rows={rows}
            word={words[statistic]}
            ranked={first.ranks.length > 1}
          />
          <p className={`${classes.legend} dim`}>{t("trends.legendValue")}</p>
        </>
      )}
      {found.hasNextPage && (
        <Button
          variant="default"
          size="compact-xs"
          loading={found.isFetchingNextPage}
          onClick={() => void found.fetchNextPage()}
        >
          {t("trends.more", { shown: formatCount(rows.length), total: formatCount(first?.total) })}
        </Button>
      )}
    </div>
  );
}
