import { useEffect, useState } from "react";
import { useMonitorAnomalies } from "../../api/monitors";
import type { Monitor, MonitorAnomaly } from "../../api/types";
import type { AnomalySort, MonitorAddress } from "../../base/address/monitor";
import { formatCount, formatReal } from "../../base/numbers/format";
import { formatSpan } from "../../base/numbers/trendLines";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../../widgets/basic/MiddleName";
import { MoreRows } from "../../widgets/basic/MoreRows";
import { SearchField } from "../../widgets/basic/SearchField";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import { useDebounced } from "../../widgets/basic/useDebounced";
import classes from "./Monitors.module.css";
import { type Choice, changeMonitor, useMonitorWords } from "./monitorWords";

interface AnomalyListProps {
  row: Monitor;
  address: MonitorAddress;
  choice: Choice;
}

/** What stands out: sorted and searched by the server; a click shows the series. */
export function AnomalyList({ row, address, choice }: AnomalyListProps) {
  const { t } = useTranslation();
  const [text, setText] = useState(address.anomalies);
  const wanted = useDebounced(text.trim(), 250);
  useEffect(() => changeMonitor({ anomalies: wanted }, true), [wanted]);
  const found = useMonitorAnomalies(row.id, row.examined, address.anomalies, address.sort);
  const rows = found.data?.pages.flatMap((page) => page.items) ?? [];
  const ranked = rows.some((one) => (one.rank ?? 0) !== 0);
  return (
    <section className={`panel ${classes.list}`} aria-label={t("monitors.anomalies")} data-testid="anomalies">
      <div className={classes.controls}>
        <h2 className={classes.title}>{t("monitors.anomalies")}</h2>
        <SearchField className={classes.search} label={t("monitors.searchAnomalies")} text={text} onText={setText} />
      </div>
      {found.error && <Failure problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {found.data && rows.length === 0 && <Empty>{t("monitors.noAnomaly")}</Empty>}
      {rows.length > 0 && (
        // biome-ignore lint/a11y/useSemanticElements: a box that scrolls; a section would be a second landmark
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <div className={classes.scroll} role="group" tabIndex={0} aria-label={t("monitors.anomalies")}>
          <table className={classes.table} aria-busy={found.isPlaceholderData}>
            <Titles sort={address.sort} />
            <tbody>
              {rows.map((one) => (
                <Row key={one.number} one={one} ranked={ranked} choice={choice} />
              ))}
            </tbody>
          </table>
          <MoreRows list={found} />
        </div>
      )}
    </section>
  );
}

type TitleKey = "kind" | "step" | "series" | "factor";

/** What a click on a title sorts by; on the one that is sorted by already, the other way where there is one. */
const TITLES: readonly (readonly { key: TitleKey; sorts: readonly AnomalySort[] }[])[] = [
  [
    { key: "kind", sorts: ["gravest"] },
    { key: "step", sorts: ["step", "-step"] },
  ],
  [{ key: "series", sorts: ["name"] }],
  [{ key: "factor", sorts: ["-factor"] }],
];

function Titles({ sort }: { sort: AnomalySort }) {
  const { t } = useTranslation();
  const down = sort.startsWith("-") || sort === "gravest";
  return (
    <thead>
      <tr>
        {TITLES.map((titles) => {
          const on = titles.some(({ sorts }) => sorts.includes(sort));
          return (
            <th
              key={titles[0]?.key}
              scope="col"
              className={titles[0]?.key === "factor" ? "num" : undefined}
              aria-sort={on ? (down ? "descending" : "ascending") : undefined}
            >
              {titles.map(({ key, sorts }) => {
                const next = sorts.find((one) => one !== sort) ?? sorts[0];
                return (
                  <button
                    key={key}
                    type="button"
                    className={`plain ${classes.sort}`}
                    onClick={() => next && changeMonitor({ sort: next })}
                  >
                    {t(`monitors.columns.${key}`)}{" "}
                    <span aria-hidden="true">{sorts.includes(sort) ? (down ? "↓" : "↑") : "↕"}</span>
                  </button>
                );
              })}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Row({ one, ranked, choice }: { one: MonitorAnomaly; ranked: boolean; choice: Choice }) {
  const { t } = useTranslation();
  const words = useMonitorWords();
  const here =
    choice.metric === one.metric && choice.step === one.step && one.name !== null && choice.series.includes(one.name);
  const show = () =>
    changeMonitor({
      rank: one.rank,
      metric: one.metric,
      statistic: one.statistic,
      series: one.name === null ? choice.series : [one.name],
      step: one.step,
      first: null,
      last: null,
    });
  return (
    <tr data-selected={here || undefined}>
      <td>
        <div className={classes.kind} data-kind={one.kind}>
          {t(`monitors.kinds.${one.kind}`)}
        </div>
        <div className={classes.of}>{formatSpan({ first: one.step, last: one.last_step })}</div>
      </td>
      <td className={classes.name}>
        <button type="button" className={`plain ${classes.open}`} aria-current={here || undefined} onClick={show}>
          {one.name === null ? (
            t("monitors.many", { count: one.series, shown: formatCount(one.series) })
          ) : (
            <MiddleName name={one.name} tail={30} />
          )}
        </button>
        <div className={classes.of}>
          {ranked && `${t("unit.rank")} ${one.rank ?? 0} · `}
          {words.metric(one.metric)}
        </div>
      </td>
      <td className="num">
        <div>{formatReal(one.value, 3)}</div>
        <div className={classes.of}>{formatReal(one.usual, 3)}</div>
      </td>
    </tr>
  );
}
