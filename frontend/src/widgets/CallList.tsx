import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, useEffect, useId, useLayoutEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { NodeNote, NodeRow } from "../api/types";
import { onlySide } from "../base/leftovers";
import { barLength, exactReal, formatError, isFiniteReal, type Real } from "../base/numbers";
import { asClass } from "../base/verdicts";
import classes from "./CallList.module.css";
import { ClassMark, LeftoverChip, MatchChip, NoteChip, VerdictMark } from "./Mark";
import { MiddleName } from "./MiddleName";
import { StandingMark } from "./Standing";
import { Failure, Loading } from "./States";
import type { CallRows } from "./useCallRows";

const ROW = 26;
const EDGE = 30;

interface CallListProps {
  calls: CallRows;
  /** Show how far both sides are from an absolute reference. */
  reference: boolean;
  /** What people say of calls, by name. */
  notes?: ReadonlyMap<string, NodeNote>;
  selected: string | null;
  onSelect: (row: NodeRow, replace: boolean) => void;
  onMove: (delta: 1 | -1) => void;
  onEdge: (edge: "first" | "last") => void;
}

/** Calls in order, input and output error side by side: that pair is the argument for an origin. */
export function CallList({ calls, reference, notes, selected, onSelect, onMove, onEdge }: CallListProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const idBase = useId();
  const { rows, goal } = calls;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    getItemKey: (index) => rows[index]?.pair ?? index,
  });

  useKeepPlace(box, rows);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the turn is the request
  useEffect(() => {
    if (goal.index < 0) return;
    const element = box.current;
    const top = goal.index * ROW;
    const visible = element && top >= element.scrollTop && top + ROW <= element.scrollTop + element.clientHeight - ROW;
    if (!visible) virtual.scrollToIndex(goal.index, { align: "center" });
  }, [goal.turn]);

  const shown = virtual.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is visible decides what is fetched
  useEffect(() => {
    if (rows.length === 0) return;
    if (last >= rows.length - EDGE) calls.fetchNext();
    else if (first <= EDGE) calls.fetchPrevious();
  }, [first, last, rows]);

  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") onMove(1);
    else if (event.key === "ArrowUp") onMove(-1);
    else if (event.key === "Home") onEdge("first");
    else if (event.key === "End") onEdge("last");
    else return;
    event.preventDefault();
  };

  const active = rows.findIndex((row) => row.address === selected);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table element cannot hold rows that come and go while scrolling
    <div
      className={classes.table}
      style={{ "--order": `${String(calls.last).length * 7 + 8}px` } as CSSProperties}
      role="grid"
      tabIndex={0}
      aria-label={t("list.title")}
      aria-rowcount={calls.total}
      aria-busy={calls.loading}
      aria-activedescendant={active >= 0 ? `${idBase}-${rows[active]?.pair}` : undefined}
      onKeyDown={press}
      data-testid="calls"
      data-reference={reference || undefined}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus */}
      <div className={`${classes.row} ${classes.header}`} role="row">
        <Head className="num">{t("list.order")}</Head>
        <Head>
          <span className="sr">{t("list.filterClass")}</span>
        </Head>
        <Head>{t("list.name")}</Head>
        <Head title={t("list.inputHint")}>{t("list.input")}</Head>
        <Head title={t("list.outputHint")}>{t("list.output")}</Head>
        {reference && <Head title={t("reference.ratioHint")}>{t("reference.ratio")}</Head>}
        <Head title={t("evidence.reached")}>{t("list.reached")}</Head>
      </div>
      <div ref={box} className={classes.box} role="none">
        {calls.problem && <Failure problem={calls.problem} onRetry={calls.retry} />}
        {!calls.problem && rows.length === 0 && calls.loading && <Loading />}
        <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="none">
          {shown.map((item) => {
            const row = rows[item.index] as NodeRow;
            return (
              <Row
                key={item.key}
                id={`${idBase}-${row.pair}`}
                row={row}
                reference={reference}
                note={notes?.get(row.name)}
                top={item.start}
                selected={row.address === selected}
                onSelect={() => onSelect(row, false)}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Head({ children, className, title }: { children: React.ReactNode; className?: string; title?: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus
    <span role="columnheader" className={className} title={title}>
      {children}
    </span>
  );
}

interface RowProps {
  id: string;
  row: NodeRow;
  note: NodeNote | undefined;
  reference: boolean;
  top: number;
  selected: boolean;
  onSelect: () => void;
}

function Row({ id, row, note, reference, top, selected, onSelect }: RowProps) {
  const { t } = useTranslation();
  const cls = asClass(row.cls);
  const only = onlySide(row);
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the grid, which holds the focus
    <div
      id={id}
      role="row"
      tabIndex={-1}
      aria-selected={selected}
      className={classes.row}
      style={{ transform: `translateY(${top}px)` }}
      data-cls={cls}
      data-name={row.name}
      data-module={row.kind === "module" || undefined}
      onClick={onSelect}
    >
      <Cell className={`num ${classes.order}`}>{row.order}</Cell>
      <Cell>
        <ClassMark cls={cls} />
      </Cell>
      <Cell className={classes.name}>
        <MiddleName name={row.name} title={title(row)} />
        {only !== null ? (
          <LeftoverChip cause={row.leftover} side={only} brief />
        ) : (
          row.match !== "exact" && <MatchChip match={row.match} confidence={row.confidence} />
        )}
        {note && <NoteChip standing={note.standing} text={note.text} />}
      </Cell>
      <Cell>
        <ErrorBar score={row.in_score} error={row.in_error} cls={cls} label={t("list.inputHint")} />
      </Cell>
      <Cell>
        <ErrorBar score={row.out_score} error={row.out_error} cls={cls} label={t("list.outputHint")} />
      </Cell>
      {reference && (
        <Cell>
          <StandingMark standing={row.standing} />
        </Cell>
      )}
      <Cell>
        <VerdictMark verdict={row.verdict} />
      </Cell>
    </div>
  );
}

function Cell({ children, className }: { children: React.ReactNode; className?: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus
    <span role="gridcell" className={className}>
      {children}
    </span>
  );
}

function title(row: NodeRow): string {
  return row.golden_name && row.golden_name !== row.name ? `${row.name}\n⇄ ${row.golden_name}` : row.name;
}

function ErrorBar({ score, error, cls, label }: { score: Real; error: Real; cls: string; label: string }) {
  const { t } = useTranslation();
  const above = score !== null && (!isFiniteReal(score) || Number(score) > 1);
  // A module around an origin, or a harmless output behind a differing input, still shows what is above the floor.
  const colour = ["exact", "benign", "unknown", "contains"].includes(cls) ? "propagated" : cls;
  return (
    <span
      className={classes.bar}
      title={`${label}: ${t("list.score", { error: exactReal(error), score: exactReal(score) })}`}
    >
      <span
        className={classes.fill}
        data-cls={above ? colour : "benign"}
        style={{ width: `${(score === null ? 0 : barLength(score)) * 100}%` }}
      />
      <span className={classes.value}>{formatError(error, score)}</span>
    </span>
  );
}

/** Pages added or dropped above must not move what the reader looks at. */
function useKeepPlace(box: React.RefObject<HTMLDivElement | null>, rows: readonly NodeRow[]): void {
  const before = useRef<readonly NodeRow[]>([]);
  useLayoutEffect(() => {
    const old = before.current;
    before.current = rows;
    const element = box.current;
    const oldFirst = old[0];
    const newFirst = rows[0];
    if (!element || !oldFirst || !newFirst || oldFirst.pair === newFirst.pair) return;
    const added = rows.findIndex((row) => row.pair === oldFirst.pair);
    if (added > 0) element.scrollTop += added * ROW;
    else {
      const dropped = old.findIndex((row) => row.pair === newFirst.pair);
      if (dropped > 0) element.scrollTop -= dropped * ROW;
    }
  }, [box, rows]);
}
