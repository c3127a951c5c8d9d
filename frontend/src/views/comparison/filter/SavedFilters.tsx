import { Button, TextInput } from "@mantine/core";
import { type KeyboardEvent, useState, useSyncExternalStore } from "react";
import { formatFilter, parseFilter } from "../../../base/address/address";
import {
  LONGEST_NAME,
  removeFilter,
  type SavedFilter,
  savedFilters,
  saveFilter,
  watchFilters,
} from "../../../base/address/savedFilters";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Filter.module.css";

export function useSavedFilters(): readonly SavedFilter[] {
  return useSyncExternalStore(watchFilters, () => savedFilters(window.localStorage));
}

/** The filters that this browser keeps, and a way to keep the one that is shown. */
export function SavedFilters({ saved, filtered }: { saved: readonly SavedFilter[]; filtered: boolean }) {
  const { t } = useTranslation();
  const { address, update, clearFilter } = useSelection();
  const [name, setName] = useState<string | null>(null);
  const now = { filter: formatFilter(address.filter), query: address.query };
  const isShown = (one: SavedFilter) => one.filter === now.filter && one.query === now.query;
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Enter" && name?.trim()) saveFilter(window.localStorage, { name, ...now });
    setName(null);
  };
  return (
    <>
      {filtered && name === null && !saved.some(isShown) && (
        <Button variant="subtle" size="compact-xs" onClick={() => setName("")} data-testid="save-filter">
          {t("list.saveFilter")}
        </Button>
      )}
      {filtered && name !== null && (
        <TextInput
          size="xs"
          w={170}
          autoFocus
          maxLength={LONGEST_NAME}
          aria-label={t("list.filterName")}
          placeholder={t("list.filterName")}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          onKeyDown={press}
          onBlur={() => setName(null)}
          data-testid="filter-name"
        />
      )}
      {saved.map((one) => (
        <span
          key={one.name}
          className={classes.saved}
          data-shown={isShown(one) || undefined}
          data-testid="saved-filter"
        >
          <button
            type="button"
            className="plain"
            aria-pressed={isShown(one)}
            title={t("list.savedHint", { what: [one.filter, one.query].filter(Boolean).join(" ") })}
            onClick={() =>
              isShown(one) ? clearFilter() : update({ filter: parseFilter(one.filter), query: one.query })
            }
          >
            <Icon name="filter" size={10} /> {one.name}
          </button>
          <button
            type="button"
            className="plain"
            aria-label={t("list.forgetFilter", { name: one.name })}
            title={t("list.forgetFilter", { name: one.name })}
            onClick={() => removeFilter(window.localStorage, one.name)}
          >
            <Icon name="close" size={10} />
          </button>
        </span>
      ))}
    </>
  );
}
