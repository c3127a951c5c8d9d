import { type ReactElement, type ReactNode, useState } from "react";
import { usePair } from "../../api/comparison/nodes";
import { useMetrics } from "../../api/records";
import type { DumpLeaf, Leaf, Metric, Pair, Producer } from "../../api/types";
import { type NumberColumn, type NumberSort, nextNumberSort } from "../../base/address/address";
import { describeType, describeValue, findDiffering, hasStatistics, STATISTICS } from "../../base/comparison/leaves";
import { ABSENT, exactReal, formatReal } from "../../base/numbers/format";
import { say } from "../../texts/serverTexts";
import { currentTranslation, isText } from "../../texts/translation";
import { useTranslation } from "../../texts/useTranslation";
import { RuleTerm, Term } from "../late/Term";
import { VerdictMark } from "../marks/Mark";
import classes from "./IoTable.module.css";
import { sortNumbers } from "./sortNumbers";

const FIRST_ROWS = 6;

interface IoTableProps {
  comparison: string;
  items: readonly Pair[];
  /** Of the table, in the head of its first column: a line of its own would push numbers out of view. */
  title: ReactNode;
  /** null: what differs first, of many items the weightiest. */
  sort: NumberSort | null;
  onSort: (sort: NumberSort | null) => void;
}

/** Two rows per tensor, target above golden; what differs is shaded; metrics unfold below. */
export function IoTable({ comparison, items, title, sort, onSort }: IoTableProps) {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  const [open, setOpen] = useState<number | null>(null);
  const label = (pair: Pair) => itemLabel(pair, t);
  const sorted = sort === null ? null : sortNumbers(items, sort, label);
  const shown = sorted
    ? sorted.slice(0, all ? undefined : FIRST_ROWS)
    : differingFirst(all ? items : weightiest(items, FIRST_ROWS));
  return (
    <div className={classes.scroll}>
      <table className={classes.table} data-testid="io">
        <thead>
          <tr>
            <SortHead column="name" sort={sort} onSort={onSort} shown={title}>
              {t("evidence.item")}
            </SortHead>
            <th scope="col">
              <span className="sr">{t("evidence.side")}</span>
            </th>
            {(["max", "min", "mean", "norm"] as const).map((column) => (
              <SortHead column={column} sort={sort} onSort={onSort} key={column}>
                {`${column.charAt(0).toUpperCase()}${column.slice(1)}`}
              </SortHead>
            ))}
          </tr>
        </thead>
        {shown.map((pair) => (
          <PairRows
            key={pair.id}
            pair={pair}
            open={open === pair.id}
            onToggle={() => setOpen(open === pair.id ? null : pair.id)}
            comparison={comparison}
          />
        ))}
      </table>
      {items.length > FIRST_ROWS && (
        <button type="button" className={`plain ${classes.all}`} onClick={() => setAll(!all)}>
          {all ? t("evidence.showLess") : t("evidence.showAll", { count: items.length })}
        </button>
      )}
    </div>
  );
}

interface SortHeadProps {
  column: NumberColumn;
  sort: NumberSort | null;
  onSort: IoTableProps["onSort"];
  /** In the place of the column's name. */
  shown?: ReactNode;
  children: string;
}

/** The title of a column, which sorts by it. */
function SortHead({ column, sort, onSort, shown, children }: SortHeadProps) {
  const { t } = useTranslation();
  const way = sort === column ? "ascending" : sort === `-${column}` ? "descending" : undefined;
  const button = (
    <button
      type="button"
      className={`plain ${classes.sort}`}
      title={t("evidence.sortBy", { column: children })}
      onClick={() => onSort(nextNumberSort(sort, column))}
      data-testid={`io-sort-${column}`}
    >
      {shown ?? children}
      <span aria-hidden="true">{way === undefined ? "" : way === "ascending" ? " ▲" : " ▼"}</span>
    </button>
  );
  return (
    <th scope="col" className={column === "name" ? undefined : "num"} aria-sort={way ?? "none"}>
      {shown === undefined ? button : <h3 className={classes.title}>{button}</h3>}
    </th>
  );
}

const WEIGHTS: Record<string, number> = { no: 6, warning: 4, yes: 0, "n/a": 0 };

/** The items worth seeing first (what differs, then outputs), in their own order. */
function weightiest(items: readonly Pair[], count: number): readonly Pair[] {
  if (items.length <= count) return items;
  const weight = (pair: Pair) => {
    const tensor = (pair.target_leaf ?? pair.golden_leaf)?.shape != null ? 1 : 0;
    return (WEIGHTS[pair.verdict] ?? 0) + (pair.role === "output" ? 2 : 0) + tensor;
  };
  const chosen = new Set([...items].sort((a, b) => weight(b) - weight(a)).slice(0, count));
  return items.filter((pair) => chosen.has(pair));
}

/** Differing items come first, so both sides' numbers are visible without scrolling. */
function differingFirst(items: readonly Pair[]): readonly Pair[] {
  const rank = (pair: Pair) => (pair.verdict === "no" ? 0 : pair.verdict === "warning" ? 1 : 2);
  return [...items].sort((a, b) => rank(a) - rank(b));
}

interface PairRowsProps {
  comparison: string;
  pair: Pair;
  open: boolean;
  onToggle: () => void;
}

function PairRows({ comparison, pair, open, onToggle }: PairRowsProps) {
  const { t } = useTranslation();
  const { target_leaf: target, golden_leaf: golden } = pair;
  const leaf = target ?? golden;
  const name = itemLabel(pair, t);
  const differs = findDiffering(target, golden);
  const types = [describeType(target), describeType(golden)];
  const typesDiffer = target !== null && golden !== null && types[0] !== types[1];
  const hashes = target?.md5 && golden?.md5 ? target.md5 === golden.md5 : null;
  const full = pair.target ?? pair.golden ?? leaf?.name ?? name;
  if (pair.verdict === "yes" && target && golden && !typesDiffer && sameSides(target, golden)) {
    return (
      <tbody className={classes.pair} data-verdict={pair.verdict} data-name={full}>
        <tr>
          <th scope="row" className={classes.item}>
            <button
              type="button"
              className="plain"
              aria-expanded={open}
              onClick={onToggle}
              title={t("evidence.expand", { name: full })}
            >
              <span className={classes.turn}>{open ? "▾" : "▸"}</span> {name}{" "}
              <span className={classes.inlineType}>{types[0]}</span>
            </button>
          </th>
          <SideCells side="=" title={t("evidence.sidesAgree")} leaf={target} other={golden} differs={differs} />
        </tr>
        {open && <DetailRow comparison={comparison} pair={pair} />}
      </tbody>
    );
  }
  return (
    <tbody className={classes.pair} data-verdict={pair.verdict} data-name={full}>
      <tr>
        <th scope="rowgroup" rowSpan={2} className={classes.item}>
          <button
            type="button"
            className="plain"
            aria-expanded={open}
            onClick={onToggle}
            title={t("evidence.expand", { name: full })}
          >
            <span className={classes.label}>
              <span className={classes.turn}>{open ? "▾" : "▸"}</span> <span>{name}</span>{" "}
              <VerdictMark verdict={pair.verdict} />
            </span>
            <span className={classes.type} data-differs={typesDiffer || undefined}>
              {typesDiffer ? `${types[0]} ≠ ${types[1]}` : types[0] || types[1]}
            </span>
            {hashes !== null && (
              <span className={classes.type} data-differs={!hashes || undefined}>
                {t(hashes ? "evidence.hashSame" : "evidence.hashDiffers")}
              </span>
            )}
          </button>
        </th>
        <SideCells side={t("comparison.target")} leaf={target} other={golden} differs={differs} />
      </tr>
      <tr>
        <SideCells side={t("comparison.golden")} leaf={golden} other={target} differs={differs} />
      </tr>
      {open && <DetailRow comparison={comparison} pair={pair} />}
    </tbody>
  );
}

/** One row is enough: no shown value differs between the sides. */
function sameSides(target: Leaf, golden: Leaf): boolean {
  return (
    findDiffering(target, golden).size === 0 &&
    hasStatistics(target) === hasStatistics(golden) &&
    target.md5 === golden.md5 &&
    target.value === golden.value
  );
}

function DetailRow({ comparison, pair }: { comparison: string; pair: Pair }) {
  return (
    <tr>
      <td colSpan={6} className={classes.detail}>
        <Metrics comparison={comparison} pair={pair} />
      </td>
    </tr>
  );
}

function itemLabel(pair: Pair, t: ReturnType<typeof useTranslation>["t"]): string {
  const role = isText(`roles.${pair.role}`) ? t(`roles.${pair.role as "input"}`) : pair.role;
  const path = (pair.target_leaf ?? pair.golden_leaf)?.path ?? "";
  return path ? `${role} ${path}` : role;
}

interface SideCellsProps {
  side: string;
  title?: string;
  leaf: Leaf | null;
  other: Leaf | null;
  differs: Set<string>;
}

function SideCells({ side, title, leaf, other, differs }: SideCellsProps) {
  const label = (
    <td className={classes.side} title={title ?? side}>
      {side}
    </td>
  );
  if (!leaf) {
    return (
      <>
        {label}
        <td colSpan={4} className={classes.absent}>
          {ABSENT}
        </td>
      </>
    );
  }
  if (!hasStatistics(leaf) && !hasStatistics(other)) {
    const text = leaf.md5 ?? (leaf.shape && leaf.value == null ? ABSENT : describeValue(leaf.value));
    const different = other !== null && (leaf.md5 ? leaf.md5 !== other.md5 : text !== describeValue(other.value));
    return (
      <>
        {label}
        <td
          colSpan={4}
          className={classes.value}
          data-differs={(different && other.shape === leaf.shape) || different || undefined}
        >
          <span className={classes.valueText} title={text}>
            {text}
          </span>
        </td>
      </>
    );
  }
  return (
    <>
      {label}
      {STATISTICS.map((name) => (
        <td
          key={name}
          className={`num ${classes.number}`}
          data-differs={differs.has(name) || undefined}
          title={exactReal(leaf[name])}
        >
          {formatReal(leaf[name])}
        </td>
      ))}
    </>
  );
}

function metricLabel(metric: Metric): string {
  return (currentTranslation().language === "zh" && metric.label_zh) || metric.label;
}

function Metrics({ comparison, pair }: { comparison: string; pair: Pair }) {
  const { t } = useTranslation();
  const full = usePair(comparison, pair.id).data;
  const metrics = useMetrics().data ?? [];
  const detail = full?.detail;
  // In another language than the server's the sentence waits for its parts.
  const message = full || currentTranslation().language !== "zh" ? say(pair.message, full?.message_said) : "";
  return (
    <>
      {message && <p className={classes.message}>{message}</p>}
      <p className={classes.message}>
        <Term word="reached">{t("evidence.reached")}</Term>: <VerdictMark verdict={pair.verdict} />{" "}
        <span className="dim">
          <RuleTerm rule={pair.rule}>{t("evidence.rule", { rule: pair.rule })}</RuleTerm>
        </span>
      </p>
      {detail?.worst_index && (
        <p className={classes.message}>
          {t("evidence.worst", {
            index: detail.worst_index.join(", "),
            target: formatReal(detail.worst_target),
            golden: formatReal(detail.worst_golden),
          })}
        </p>
      )}
      {(pair.target_leaf?.md5 || pair.golden_leaf?.md5) && (
        <p className={`${classes.message} mono`}>
          {t("evidence.md5")}: {pair.target_leaf?.md5 ?? ABSENT} / {pair.golden_leaf?.md5 ?? ABSENT}
        </p>
      )}
      <dl className={classes.metrics}>
        {Object.entries(pair.metrics).map(([name, value]) => {
          const metric = metrics.find((one) => one.name === name);
          return (
            <div key={name}>
              <dt title={metric && `${name} = ${metric.formula}`}>{metric ? metricLabel(metric) : name}</dt>
              <dd className="num" title={exactReal(value)}>
                {formatReal(value)}
                {metric?.unit && ` ${metric.unit}`}
              </dd>
            </div>
          );
        })}
      </dl>
    </>
  );
}

/** Items of one dump: the same columns with one side. */
interface LeafTableProps {
  items: readonly DumpLeaf[];
  /** A link to the record that an argument is. */
  link: (producer: Producer) => ReactElement;
}

export function LeafTable({ items, link }: LeafTableProps) {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  const shown = all ? items : items.slice(0, 40);
  return (
    <div className={classes.scroll}>
      <table className={classes.table} data-testid="leaves">
        <thead>
          <tr>
            <th scope="col">{t("evidence.item")}</th>
            {["Max", "Min", "Mean", "Norm"].map((name) => (
              <th scope="col" className="num" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        {shown.map((leaf, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: items never move and damaged dumps repeat names
          <tbody key={index} className={classes.pair}>
            <tr>
              <th scope="row" className={classes.item} title={leaf.name}>
                <span>
                  {isText(`roles.${leaf.role}`) ? t(`roles.${leaf.role as "input"}`) : leaf.role} {leaf.path}
                </span>
                <span className={classes.type}>{describeType(leaf)}</span>
                {leaf.producer && <span className={classes.made}>{link(leaf.producer)}</span>}
              </th>
              {hasStatistics(leaf) ? (
                STATISTICS.map((name) => (
                  <td key={name} className={`num ${classes.number}`} title={exactReal(leaf[name])}>
                    {formatReal(leaf[name])}
                  </td>
                ))
              ) : (
                <td colSpan={4} className={classes.value}>
                  <span className={classes.valueText}>{leaf.md5 ?? describeValue(leaf.value)}</span>
                </td>
              )}
            </tr>
          </tbody>
        ))}
      </table>
      {items.length > 40 && (
        <button type="button" className={`plain ${classes.all}`} onClick={() => setAll(!all)}>
          {all ? t("evidence.showLess") : t("evidence.showAll", { count: items.length })}
        </button>
      )}
    </div>
  );
}
