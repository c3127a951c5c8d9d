import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
} from "react";
import type { FailingCalls } from "../../api/comparison/prechecks";
import type { NodeNote, NodeRow } from "../../api/types";
import { onlySide } from "../../base/comparison/unmatched";
import { toClass } from "../../base/comparison/verdicts";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../basic/MiddleName";
import { Failure, Loading } from "../basic/States";
import { Term } from "../late/Term";
import { ErrorBar } from "../marks/ErrorBar";
import { ClassMark, MatchChip, NoteChip, UnmatchedChip, VerdictMark } from "../marks/Mark";
import { FailingMark } from "../marks/PrecheckMark";
import { StandingMark } from "../marks/StandingMark";
import classes from "./CallList.module.css";
import type { CallRows } from "./useCallRows";
import { useVirtualRows } from "./useVirtualRows";

const ROW = 26;

interface CallListProps {
  calls: CallRows;
  /** Show how far both sides are from an absolute reference. */
  reference: boolean;
  /** People's notes on calls, by name. */
  notes?: ReadonlyMap<string, NodeNote>;
  /** Calls that fail alone. */
  failing?: FailingCalls;
  selected: string | null;
  onSelect: (row: NodeRow, replace: boolean) => void;
  /** Rows to go on from the selected one. */
  onMove: (delta: number) => void;
  onEdge: (edge: "first" | "last") => void;
}

/** Calls in order, input and output error side by side: that pair is the argument for an origin. */
export function CallList({ calls, reference, notes, failing, selected, onSelect, onMove, onEdge }: CallListProps) {
  const { t } = useTranslation();
  const idBase = useId();
  const { total, goal, show } = calls;
  const tall = useVirtualRows(total, ROW);
  const { first, last, near, reveal } = tall;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the turn is the request
  useLayoutEffect(() => {
    if (goal.place >= 0) reveal(goal.place);
  }, [goal.turn, reveal]);

  useEffect(() => {
    if (total > 0) show(first, last);
  }, [first, last, total, show]);

  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") onMove(1);
    else if (event.key === "ArrowUp") onMove(-1);
    else if (event.key === "PageDown") onMove(tall.page);
    else if (event.key === "PageUp") onMove(-tall.page);
    else if (event.key === "Home") onEdge("first");
    else if (event.key === "End") onEdge("last");
    else return;
    event.preventDefault();
  };

  const drawRow = (place: number, key: number) => {
    const row = calls.rowAt(place);
    const at = { id: `${idBase}-${place}`, top: tall.offset(place), place };
    if (!row) return <Coming key={key} {...at} />;
    return (
      <Row
        key={key}
        {...at}
        row={row}
        reference={reference}
        note={notes?.get(row.name)}
        failing={failing}
        selected={row.address === selected}
        onSelect={onSelect}
      />
    );
  };
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  const keyOf = useKeptKeys(first, last);
  const drawn = useRef(new Map<number, { place: number; row: ReactNode }>());
  const before = drawn.current;
  drawn.current = new Map();
  for (const place of shown) {
    const key = keyOf(place);
    const old = before.get(key);
    const inView = near === null || (place >= near.first && place <= near.last);
    // Out of view a row stays as it was, unless its call is one of those around here, too.
    const stays = !inView && old !== undefined && (old.place < first || old.place > last);
    drawn.current.set(key, stays ? old : { place, row: drawRow(place, key) });
  }
  const rows = [...drawn.current.values()].map(({ row }) => row);
  const orders = shown.map((place) => calls.rowAt(place)?.order ?? 0);
  const active = calls.selectedAt >= first && calls.selectedAt <= last;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table element cannot hold rows that come and go while scrolling
    <div
      className={classes.table}
      style={{ "--order": `${String(Math.max(99, ...orders)).length * 7 + 8}px` } as CSSProperties}
      role="grid"
      tabIndex={0}
      aria-label={t("list.title")}
      aria-rowcount={total + 1} // the titles are a row too
      aria-busy={calls.loading}
      aria-activedescendant={active ? `${idBase}-${calls.selectedAt}` : undefined}
      onKeyDown={press}
      data-testid="calls"
      data-reference={reference || undefined}
    >
      <Titles reference={reference} />
      <div ref={tall.ref} className={classes.box} role="none" data-rows>
        {calls.problem && (
          <NoRows>
            <Failure problem={calls.problem} onRetry={calls.retry} />
          </NoRows>
        )}
        {!calls.problem && total === 0 && calls.loading && (
          <NoRows>
            <Loading />
          </NoRows>
        )}
        <div style={{ height: tall.height, position: "relative" }} role="none">
          {rows}
        </div>
      </div>
    </div>
  );
}

/** Keys of rows: where the list jumps, the elements of the rows before get other contents, which is half the work of new ones. */
function useKeptKeys(first: number, last: number): (place: number) => number {
  const before = useRef({ first, last, shift: 0 });
  const apart = first > before.current.last || last < before.current.first;
  const shift = before.current.shift + (apart ? first - before.current.first : 0);
  before.current = { first, last, shift };
  return (place) => place - shift;
}

const Titles = memo(function Titles({ reference }: { reference: boolean }) {
  const { t } = useTranslation();
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus
    <div className={`${classes.row} ${classes.header}`} role="row" aria-rowindex={1}>
      <Head className="num">{t("list.order")}</Head>
      <Head>
        <span className="sr">{t("list.filterClass")}</span>
      </Head>
      <Head>{t("list.name")}</Head>
      <Head>
        <Term word="floor" more={`${t("list.inputHint")}: ${t("list.unitHint")}`}>
          {t("list.input")}
        </Term>
      </Head>
      <Head>
        <Term word="floor" more={`${t("list.outputHint")}: ${t("list.unitHint")}`}>
          {t("list.output")}
        </Term>
      </Head>
      {reference && <Head title={t("reference.ratioHint")}>{t("reference.ratio")}</Head>}
      <Head>
        <Term word="reached">{t("list.reached")}</Term>
      </Head>
    </div>
  );
});

function Head({ children, className, title }: { children: React.ReactNode; className?: string; title?: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus
    <span role="columnheader" className={className} title={title}>
      {children}
    </span>
  );
}

interface RowPlace {
  id: string;
  top: number;
  place: number;
}

/** What stands in the place of the calls, as a row of one cell: a grid may hold nothing else. */
function NoRows({ children }: { children: React.ReactNode }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus
    <div role="row" aria-rowindex={2}>
      {/* biome-ignore lint/a11y/useSemanticElements: see the grid */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus */}
      <div role="gridcell">{children}</div>
    </div>
  );
}

/** A row that is being read. */
const Coming = memo(function Coming({ id, top, place }: RowPlace) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid holds the focus
    <div
      id={id}
      role="row"
      aria-rowindex={place + 2}
      aria-busy
      className={classes.row}
      style={{ transform: `translateY(${top}px)` }}
    >
      {cell("…", "num dim")}
    </div>
  );
});

interface RowProps extends RowPlace {
  row: NodeRow;
  note: NodeNote | undefined;
  failing: FailingCalls | undefined;
  reference: boolean;
  selected: boolean;
  onSelect: (row: NodeRow, replace: boolean) => void;
}

/** Drawn again only where something of it changed: a key changes two rows of some forty, a scroll the few that come. */
const Row = memo(function Row({ id, row, note, failing, reference, top, place, selected, onSelect }: RowProps) {
  const { t } = useTranslation();
  const cls = toClass(row.cls);
  const only = onlySide(row);
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the grid, which holds the focus
    <div
      id={id}
      role="row"
      tabIndex={-1}
      aria-rowindex={place + 2}
      aria-selected={selected}
      className={classes.row}
      style={{ transform: `translateY(${top}px)` }}
      data-cls={cls}
      data-name={row.name}
      data-module={row.kind === "module" || undefined}
      onClick={() => onSelect(row, false)}
    >
      {cell(row.order, `num ${classes.order}`)}
      {cell(<ClassMark name={row.name} cls={cls} verdict={row.verdict} />)}
      {cell(
        <>
          <MiddleName name={row.name} title={title(row)} />
          {only !== null ? (
            <UnmatchedChip cause={row.leftover} side={only} brief />
          ) : (
            row.match !== "exact" && <MatchChip match={row.match} confidence={row.confidence} />
          )}
          {failing && <FailingMark failing={failing} name={row.address} />}
          {note && <NoteChip standing={note.standing} text={note.text} />}
        </>,
        classes.name,
      )}
      {cell(<ErrorBar score={row.in_score} error={row.in_error} cls={cls} label={t("list.inputHint")} />)}
      {cell(<ErrorBar score={row.out_score} error={row.out_error} cls={cls} label={t("list.outputHint")} />)}
      {reference && cell(<StandingMark standing={row.standing} />)}
      {cell(<VerdictMark verdict={row.verdict} />)}
    </div>
  );
});

/** Called, not drawn as a component: a jump draws three hundred cells at once. */
function cell(children: React.ReactNode, className?: string) {
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
