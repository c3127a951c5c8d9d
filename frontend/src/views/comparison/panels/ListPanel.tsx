import { Button, Select } from "@mantine/core";
import { memo, useCallback, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useUnitPrecheck } from "../../../api/comparison/prechecks";
import { callsOfUnit } from "../../../api/file/contents";
import type { NodeRow } from "../../../api/types";
import { isFiltered, SORTS, type Sort } from "../../../base/address/address";
import { splitSearch } from "../../../base/address/searchTerms";
import { IN_FILE } from "../../../base/inFile";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { currentAddress } from "../../../widgets/basic/navigation";
import { SearchField } from "../../../widgets/basic/SearchField";
import { describeProblem, Empty } from "../../../widgets/basic/States";
import { useKeys } from "../../../widgets/basic/useKeys";
import { CallList } from "../../../widgets/lists/CallList";
import { Chips } from "../filter/Chips";
import { FilterMenu } from "../filter/FilterMenu";
import { Following, useSelectionNow } from "../selection/Following";
import { useSay } from "../selection/notice";
import { useResult, useShownComparison } from "../selection/result";
import { useSelection, useShownCalls } from "../selection/SelectionProvider";
import { useCallWalk } from "../selection/useCallWalk";
import classes from "./Panels.module.css";

export function ListPanel() {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { summary, notes } = useResult();
  const { address, unit, selected, select, clearFilter } = useSelection();
  const calls = useShownCalls();
  const walk = useCallWalk();
  const latest = useRef(walk);
  latest.current = walk;
  const { failing } = useUnitPrecheck(id, unit);
  const filtered = isFiltered(address);
  const reference = summary?.reference != null;
  const pick = useCallback((row: NodeRow, replace: boolean) => select(row.address, replace), [select]);
  const move = useCallback((delta: number) => void latest.current.move(delta), []);
  const moveToEdge = useCallback((edge: "first" | "last") => void latest.current.moveToEdge(edge), []);
  return (
    <>
      <Following>
        <Head total={calls.total} known={!calls.loading && !calls.refused} />
      </Following>
      {calls.refused && <Refused problem={calls.refused} />}
      <Following>
        <Chips />
      </Following>
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
          onSelect={pick}
          onMove={move}
          onEdge={moveToEdge}
        />
      )}
    </>
  );
}

/** known: the number of calls is that of the list that is asked for */
const Head = memo(function Head({ total: count, known }: { total: number; known: boolean }) {
  const { t } = useTranslation();
  const { summary } = useResult();
  const { address, update, unit } = useSelection();
  const filtered = isFiltered(address);
  const total = formatCount(count);
  const reference = summary?.reference != null;
  const sorts = SORTS.filter((sort) => reference || sort !== "-ratio" || address.sort === sort);
  return (
    <div className={classes.head}>
      <Query />
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
        {!known
          ? "…"
          : filtered
            ? t("list.filtered", { count, total })
            : IN_FILE && count < callsOfUnit(unit)
              ? t("file.listed", { held: total, total: formatCount(callsOfUnit(unit)) })
              : t("list.all", { total })}
      </span>
    </div>
  );
});

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

/** What is typed is the address's at once: a later one would undo what is typed behind it. */
function Query() {
  return <Search query={useSelectionNow().address.query} />;
}

/** Typing changes the address after a pause and leaves no steps for the back button. */
const Search = memo(function Search({ query }: { query: string }) {
  const { t } = useTranslation();
  const say = useSay();
  const { steps, ranks } = useResult();
  const { update } = useSelection();
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
  const [text, setText] = useState(query);
  const sent = useRef(query);
  const send = useRef(search);
  send.current = search;

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
});
