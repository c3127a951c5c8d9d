import { Button, Select } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useUnitPrecheck } from "../../../api/comparison/prechecks";
import { callsOfUnit } from "../../../api/file/contents";
import { isFiltered, SORTS, type Sort } from "../../../base/address/address";
import { splitSearch } from "../../../base/address/searchTerms";
import { IN_FILE } from "../../../base/inFile";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { currentAddress, useAddress } from "../../../widgets/basic/navigation";
import { SearchField } from "../../../widgets/basic/SearchField";
import { describeProblem, Empty } from "../../../widgets/basic/States";
import { useKeys } from "../../../widgets/basic/useKeys";
import { CallList } from "../../../widgets/lists/CallList";
import { Chips } from "../filter/Chips";
import { FilterMenu } from "../filter/FilterMenu";
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
        <FilterMenu />
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
              : IN_FILE && calls.total < callsOfUnit(unit)
                ? t("file.listed", { held: total, total: formatCount(callsOfUnit(unit)) })
                : t("list.all", { total })}
        </span>
      </div>
      {calls.refused && <Refused problem={calls.refused} />}
      <Chips />
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

  const [, update] = useAddress();
  useKeys({
    search: () => {
      if (currentAddress().stage !== null) flushSync(() => update({ stage: null })); // the list is behind it
      document.querySelector<HTMLInputElement>("[data-search]")?.focus();
    },
  });
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
