import { useEffect, useState } from "react";
import { useCheckpointCounts, useCheckpointTensors } from "../../api/checkpoints";
import type { CheckpointTensor } from "../../api/types";
import {
  type CheckpointAddress,
  type CheckpointSort,
  type CheckpointState,
  formatCheckpointAddress,
  parseCheckpointAddress,
  STATES,
} from "../../base/address/checkpoint";
import { getLocation, navigate } from "../../base/address/location";
import { formatCount, formatReal, formatShare } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../../widgets/basic/MiddleName";
import { MoreRows } from "../../widgets/basic/MoreRows";
import { useLocation } from "../../widgets/basic/navigation";
import { SearchField } from "../../widgets/basic/SearchField";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import { useDebounced } from "../../widgets/basic/useDebounced";
import classes from "./Checkpoints.module.css";
import { TensorDetail } from "./TensorDetail";
import { formText, shapeText } from "./tensorWords";

/** A change of the address; what is typed leaves no step for the back button. */
function change(part: Partial<CheckpointAddress>, replace = false): void {
  const { path, search } = getLocation();
  navigate(path, formatCheckpointAddress({ ...parseCheckpointAddress(search), ...part }), replace);
}

/** The tensors: by state, by part of a name, in any order, and one of them in full. */
export function TensorList({ id }: { id: string }) {
  const { t } = useTranslation();
  const { search } = useLocation();
  const address = parseCheckpointAddress(search);
  const query = useCheckpointTensors(id, { states: address.states, q: address.query, sort: address.sort });
  const rows = query.data?.pages.flatMap((page) => page.items) ?? [];
  const total = query.data?.pages[0]?.total ?? 0;
  const shown = address.tensor;
  return (
    <div className={classes.split} data-detail={shown !== null || undefined}>
      <section className={`panel ${classes.list}`} aria-label={t("checkpoints.tensors")} data-testid="tensors">
        <Controls id={id} address={address} />
        {query.error && <Failure problem={query.error} onRetry={() => void query.refetch()} />}
        {query.isPending && <Loading />}
        {!query.isPending && !query.error && rows.length === 0 && <Empty>{t("checkpoints.none")}</Empty>}
        {rows.length > 0 && (
          <>
            {/* biome-ignore lint/a11y/useSemanticElements: a box that scrolls; a section would be a second landmark */}
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
            <div className={classes.scroll} role="group" tabIndex={0} aria-label={t("checkpoints.tensors")}>
              <table className={classes.table} aria-busy={query.isPlaceholderData}>
                <Titles sort={address.sort} />
                <tbody>
                  {rows.map((row) => (
                    <Row key={row.number} row={row} selected={row.number === shown} />
                  ))}
                </tbody>
              </table>
            </div>
            <div className={`${classes.foot} dim num`}>
              {t("home.shown", { shown: formatCount(rows.length), total: formatCount(total) })}
              <MoreRows list={query} />
            </div>
          </>
        )}
      </section>
      {shown !== null && <TensorDetail id={id} number={shown} onClose={() => change({ tensor: null })} />}
    </div>
  );
}

/** Search, and the states as filters with the number of tensors that each would show. */
function Controls({ id, address }: { id: string; address: CheckpointAddress }) {
  const { t } = useTranslation();
  const [text, setText] = useState(address.query);
  const wanted = useDebounced(text.trim(), 250);
  useEffect(() => change({ query: wanted }, true), [wanted]);
  const counts = useCheckpointCounts(id, address.query).data?.counts;
  const toggle = (state: CheckpointState) =>
    change({ states: STATES.filter((one) => address.states.includes(one) !== (one === state)) });
  return (
    <div className={classes.controls}>
      <fieldset className={classes.states}>
        <legend className="sr">{t("checkpoints.filter")}</legend>
        {STATES.map((state) => {
          const count = counts?.[state] ?? 0;
          const on = address.states.includes(state);
          if (count === 0 && !on) return null;
          return (
            <button
              key={state}
              type="button"
              className={`plain ${classes.state}`}
              aria-pressed={on}
              data-state={state}
              onClick={() => toggle(state)}
            >
              {t(`checkpoints.states.${state}`)} <span className="num">{formatCount(count)}</span>
            </button>
          );
        })}
      </fieldset>
      <SearchField className={classes.search} label={t("checkpoints.search")} text={text} onText={setText} />
    </div>
  );
}

type ColumnKey = "state" | "name" | "form" | "share" | "largest" | "relative";

const COLUMNS: readonly { key: ColumnKey; sort?: CheckpointSort; number?: boolean }[] = [
  { key: "state", sort: "worst" },
  { key: "name", sort: "name" },
  { key: "form" },
  { key: "share", sort: "-share", number: true },
  { key: "largest", sort: "-largest", number: true },
  { key: "relative", number: true },
];

function Titles({ sort }: { sort: CheckpointSort }) {
  const { t } = useTranslation();
  return (
    <thead>
      <tr>
        {COLUMNS.map(({ key, sort: own, number }) => {
          const on = own === sort;
          const down = own?.startsWith("-") || own === "worst";
          const order = down ? ("descending" as const) : ("ascending" as const);
          return (
            <th key={key} scope="col" className={number ? "num" : undefined} aria-sort={on ? order : undefined}>
              {own ? (
                <button type="button" className={`plain ${classes.order}`} onClick={() => change({ sort: own })}>
                  {t(`checkpoints.columns.${key}`)} <span aria-hidden="true">{on ? (down ? "↓" : "↑") : "↕"}</span>
                </button>
              ) : (
                t(`checkpoints.columns.${key}`)
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Row({ row, selected }: { row: CheckpointTensor; selected: boolean }) {
  const { t } = useTranslation();
  return (
    <tr data-number={row.number} data-selected={selected || undefined}>
      <td>
        <span className={classes.word} data-state={row.state}>
          {t(`checkpoints.states.${row.state}`)}
        </span>
      </td>
      <td className={classes.name}>
        <button
          type="button"
          className={`plain ${classes.open}`}
          aria-current={selected || undefined}
          onClick={() => change({ tensor: row.number })}
        >
          <MiddleName name={row.name} tail={40} />
        </button>
        {row.golden !== "" && row.golden !== row.name && (
          <div className={classes.other} title={row.golden}>
            = <bdi>{row.golden}</bdi>
          </div>
        )}
      </td>
      <td className="mono">
        {formText(row)} {shapeText(row)}
      </td>
      <td className="num">{formatShare(row.share)}</td>
      <td className="num">{formatReal(row.max_abs, 3)}</td>
      <td className="num">{formatReal(row.rel_l2, 3)}</td>
    </tr>
  );
}
