import { Button, Checkbox, Menu, Select } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useUnitPrecheck } from "../../../api/comparison/prechecks";
import { type Filter, isFiltered, SORTS, type Sort } from "../../../base/address/address";
import { splitSearch } from "../../../base/address/searchTerms";
import { CAUSES_WITHOUT_PARTNER, UNMATCHED_CAUSES } from "../../../base/comparison/unmatched";
import { CLASSES, VERDICTS, verdictLabel } from "../../../base/comparison/verdicts";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { SearchField } from "../../../widgets/basic/SearchField";
import { describeProblem, Empty } from "../../../widgets/basic/States";
import { useKeys } from "../../../widgets/basic/useKeys";
import { CallList } from "../../../widgets/lists/CallList";
import { ClassMark } from "../../../widgets/marks/Mark";
import { useSay } from "../selection/notice";
import { useResult, useShownComparison } from "../selection/result";
import { useSelection, useShownCalls } from "../selection/SelectionProvider";
import { useCallWalk } from "../selection/useCallWalk";
import classes from "./Panels.module.css";

export function ListPanel() {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { summary, notes, steps, ranks } = useResult();
  const { address, update, unit, selected, select, clearFilter } = useSelection();
  const calls = useShownCalls();
  const walk = useCallWalk();
  const { failing } = useUnitPrecheck(id, unit);
  const say = useSay();
  const filtered = isFiltered(address);
  const total = formatCount(calls.total);
  const reference = summary?.reference != null;
  const sorts = SORTS.filter((sort) => reference || sort !== "-ratio" || address.sort === sort);
  /** A rank or step in the search is gone to where there is one; the list shows what the rest finds there. Returns the rest. */
  const search = (text: string): string => {
    const { query, rank, step } = splitSearch(text);
    const missing = (rank !== null && !ranks.includes(rank)) || (step !== null && !steps.includes(step));
    if (missing) {
      say(t("list.noPlace", { ranks: ranks.join(" "), steps: steps.join(" ") }));
      return text;
    }
    update({ query, ...(rank === null ? {} : { rank }), ...(step === null ? {} : { step }) }, true);
    return query;
  };
  return (
    <>
      <div className={classes.head}>
        <Search query={address.query} onQuery={search} />
        <FilterMenu filter={address.filter} onFilter={(filter) => update({ filter })} />
        <Select
          aria-label={t("list.sort")}
          data-testid="sort"
          w={138}
          allowDeselect={false}
          data={sorts.map((sort) => ({ value: sort as string, label: t(`list.sorts.${sort}`) }))}
          value={address.sort}
          onChange={(sort) => sort && update({ sort: sort as Sort })}
        />
        <span className={classes.total} aria-live="polite" data-testid="total">
          {calls.loading || calls.refused
            ? "…"
            : filtered
              ? t("list.filtered", { count: calls.total, total })
              : t("list.all", { total })}
        </span>
      </div>
      {calls.refused && <Refused problem={calls.refused} />}
      {filtered && <Chips />}
      {calls.total === 0 && !calls.loading && !calls.problem ? (
        <Empty>
          {t("list.empty")}
          {filtered && (
            <Button variant="default" size="compact-xs" onClick={clearFilter}>
              {t("list.clearFilter")}
            </Button>
          )}
        </Empty>
      ) : (
        <CallList
          calls={calls}
          reference={reference}
          notes={notes}
          failing={failing}
          selected={selected}
          onSelect={(row, replace) => select(row.address, replace)}
          onMove={(delta) => void walk.move(delta)}
          onEdge={(edge) => void walk.moveToEdge(edge)}
        />
      )}
    </>
  );
}

/** What a search lacks, while it is typed; the list still shows what the one before it found. */
function Refused({ problem }: { problem: Error }) {
  const { detail, hint } = describeProblem(problem);
  return (
    <output className={classes.refused} aria-live="polite" data-testid="search-refused">
      {detail}
      {hint !== null && <span className="dim"> {hint}</span>}
    </output>
  );
}

/** Typing changes the address after a pause and leaves no steps for the back button; onQuery returns what of it to go on showing. */
function Search({ query, onQuery }: { query: string; onQuery: (query: string) => string }) {
  const { t } = useTranslation();
  const [text, setText] = useState(query);
  const sent = useRef(query);
  const send = useRef(onQuery);
  send.current = onQuery;

  useEffect(() => {
    if (query === sent.current) return;
    sent.current = query;
    setText(query);
  }, [query]);

  useEffect(() => {
    const wanted = text.trim();
    if (wanted === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = send.current(wanted);
      if (sent.current !== wanted) setText(sent.current);
    }, 250);
    return () => clearTimeout(timer);
  }, [text]);

  useKeys({ search: () => document.querySelector<HTMLInputElement>("[data-search]")?.focus() });
  return (
    <SearchField
      className={classes.grow}
      label={t("list.searchLabel")}
      placeholder={t("list.searchHint")}
      title={t("list.searchTitle")}
      text={text}
      onText={setText}
      data-search
      data-testid="search"
    />
  );
}

function FilterMenu({ filter, onFilter }: { filter: Filter; onFilter: (filter: Filter) => void }) {
  const { t } = useTranslation();
  const toggle = <T,>(list: readonly T[], item: T): T[] =>
    list.includes(item) ? list.filter((other) => other !== item) : [...list, item];
  const count = filter.classes.length + filter.verdicts.length + filter.leftovers.length;
  return (
    <Menu closeOnItemClick={false} position="bottom-start" classNames={{ dropdown: classes.menu }}>
      <Menu.Target>
        <Button variant="default" leftSection={<Icon name="filter" size={12} />} px={8} data-testid="filter">
          {t("list.filter")}
          {count > 0 ? ` ${count}` : ""}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{t("list.filterClass")}</Menu.Label>
        {CLASSES.map((cls) => (
          <Menu.Item
            key={cls}
            py={3}
            leftSection={<Checkbox.Indicator size="xs" checked={filter.classes.includes(cls)} />}
            onClick={() => onFilter({ ...filter, classes: toggle(filter.classes, cls) })}
            data-testid={`filter-${cls}`}
          >
            <ClassMark cls={cls} words />
          </Menu.Item>
        ))}
        <Menu.Label>{t("list.filterVerdict")}</Menu.Label>
        {VERDICTS.map((verdict) => (
          <Menu.Item
            key={verdict}
            py={3}
            leftSection={<Checkbox.Indicator size="xs" checked={filter.verdicts.includes(verdict)} />}
            onClick={() => onFilter({ ...filter, verdicts: toggle(filter.verdicts, verdict) })}
            data-testid={`filter-verdict-${verdict.replace("/", "")}`}
          >
            {verdictLabel(verdict)}
          </Menu.Item>
        ))}
        <Menu.Label>{t("list.filterLeftover")}</Menu.Label>
        {UNMATCHED_CAUSES.map((word) => (
          <Menu.Item
            key={word}
            py={3}
            leftSection={<Checkbox.Indicator size="xs" checked={filter.leftovers.includes(word)} />}
            onClick={() => onFilter({ ...filter, leftovers: toggle(filter.leftovers, word) })}
            title={t(`leftoverHelp.${word}`)}
            data-testid={`filter-left-${word}`}
          >
            {t(`leftovers.${word}`)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function Chips() {
  const { t } = useTranslation();
  const { address, update, clearFilter } = useSelection();
  const { filter, query } = address;
  const chips: { key: string; label: React.ReactNode; without: () => void }[] = [
    ...filter.classes.map((cls) => ({
      key: `class:${cls}`,
      label: <ClassMark cls={cls} words />,
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
  return (
    <div className={classes.chips} data-testid="chips">
      {chips.map(({ key, label, without }) => (
        <button key={key} type="button" className={`plain ${classes.chip}`} title={t("app.clear")} onClick={without}>
          {label}
          <Icon name="close" size={10} />
        </button>
      ))}
      <Button variant="subtle" size="compact-xs" onClick={clearFilter} data-testid="clear-filter">
        {t("list.clearFilter")}
      </Button>
    </div>
  );
}
