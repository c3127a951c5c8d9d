import { Button } from "@mantine/core";
import { memo, type ReactNode } from "react";
import { isFiltered } from "../../../base/address/address";
import { CAUSES_WITHOUT_PARTNER } from "../../../base/comparison/unmatched";
import { verdictLabel } from "../../../base/comparison/verdicts";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { WordMark } from "../../../widgets/marks/Mark";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Filter.module.css";
import { SavedFilters, useSavedFilters } from "./SavedFilters";

/** What the list is filtered by, each part with a way to leave it out, and the filters that this browser keeps. */
export const Chips = memo(function Chips() {
  const { t } = useTranslation();
  const { address, update, clearFilter } = useSelection();
  const { filter, query } = address;
  const chips: { key: string; label: ReactNode; without: () => void }[] = [
    ...filter.classes.map((cls) => ({
      key: `class:${cls}`,
      label: <WordMark word={cls} words />,
      without: () => update({ filter: { ...filter, classes: filter.classes.filter((other) => other !== cls) } }),
    })),
    ...filter.verdicts.map((verdict) => ({
      key: `verdict:${verdict}`,
      label: verdictLabel(verdict),
      without: () => update({ filter: { ...filter, verdicts: filter.verdicts.filter((other) => other !== verdict) } }),
    })),
  ];
  // All causes together are one chip: calls without a partner.
  if (
    CAUSES_WITHOUT_PARTNER.every((word) => filter.leftovers.includes(word)) &&
    filter.leftovers.length === CAUSES_WITHOUT_PARTNER.length
  ) {
    chips.push({
      key: "left",
      label: t("list.filterLeftover"),
      without: () => update({ filter: { ...filter, leftovers: [] } }),
    });
  } else {
    for (const word of filter.leftovers) {
      const leftovers = filter.leftovers.filter((other) => other !== word);
      chips.push({
        key: `left:${word}`,
        label: t("list.leftover", { cause: t(`leftovers.${word}`) }),
        without: () => update({ filter: { ...filter, leftovers } }),
      });
    }
  }
  if (filter.api !== null) {
    chips.push({
      key: "api",
      label: t("list.api", { api: filter.api }),
      without: () => update({ filter: { ...filter, api: null } }),
    });
  }
  if (filter.range) {
    const [first, last] = filter.range;
    chips.push({
      key: "range",
      label: t("list.range", { first, last }),
      without: () => update({ filter: { ...filter, range: null } }),
    });
  }
  if (query) chips.push({ key: "query", label: `“${query}”`, without: () => update({ query: "" }) });
  const filtered = isFiltered(address);
  const saved = useSavedFilters();
  if (!filtered && saved.length === 0) return null;
  return (
    <div className={classes.chips} data-testid="chips">
      {chips.map(({ key, label, without }) => (
        <button key={key} type="button" className={`plain ${classes.chip}`} title={t("app.clear")} onClick={without}>
          {label}
          <Icon name="close" size={10} />
        </button>
      ))}
      {filtered && (
        <Button variant="subtle" size="compact-xs" onClick={clearFilter} data-testid="clear-filter">
          {t("list.clearFilter")}
        </Button>
      )}
      <SavedFilters saved={saved} filtered={filtered} />
    </div>
  );
});
