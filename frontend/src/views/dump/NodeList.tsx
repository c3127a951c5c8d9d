import { type KeyboardEvent, useEffect, useId, useLayoutEffect } from "react";
import { useFindings } from "../../api/dump/overflow";
import type { Unit } from "../../api/records";
import type { DumpNodeRow } from "../../api/types";
import { describeTensor } from "../../base/comparison/leaves";
import { exactReal, formatReal, isFiniteReal, type Real } from "../../base/numbers/format";
import { say } from "../../texts/serverTexts";
import { isText } from "../../texts/translation";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../../widgets/basic/MiddleName";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import { followWidth } from "../../widgets/basic/sizes";
import type { PagedRows } from "../../widgets/lists/usePagedRows";
import { useVirtualRows } from "../../widgets/lists/useVirtualRows";
import { PrecheckChip } from "../../widgets/marks/PrecheckMark";
import classes from "./DumpView.module.css";
import { PartMark } from "./PartMark";
import { RowList } from "./RowList";

const ROW = 24;

/** Pixels from which the dtype, and then the last column too, is shown. */
const followRoom = followWidth(400, 540);

interface NodeListProps {
  nodes: PagedRows<DumpNodeRow>;
  query: string;
  selected: string | null;
  onSelect: (name: string, replace?: boolean) => void;
}

/** Nodes in call order, page by page. */
export function NodeList({ nodes, query, selected, onSelect }: NodeListProps) {
  const { t } = useTranslation();
  const idBase = useId();
  const { total, goal, show, selectedAt } = nodes;
  const tall = useVirtualRows(total, ROW);
  const { first, last, reveal } = tall;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the turn is the request
  useLayoutEffect(() => {
    if (goal.place >= 0) reveal(goal.place);
  }, [goal.turn, reveal]);
  useEffect(() => {
    if (total > 0) show(first, last);
  }, [first, last, total, show]);

  const go = async (place: number) => {
    const row = await nodes.fetchAt(Math.max(0, Math.min(place, total - 1)));
    if (row) onSelect(row.name, true);
  };
  const press = (event: KeyboardEvent) => {
    const goals: Record<string, number> = {
      ArrowDown: selectedAt + 1,
      ArrowUp: selectedAt - 1,
      PageDown: selectedAt + tall.page,
      PageUp: selectedAt - tall.page,
      Home: 0,
      End: total - 1,
    };
    const place = goals[event.key];
    if (place === undefined) return;
    event.preventDefault();
    void go(place);
  };

  if (nodes.refused) return <Failure problem={nodes.refused} />;
  if (nodes.problem) return <Failure problem={nodes.problem} onRetry={nodes.retry} />;
  if (total === 0 && nodes.loading) return <Loading />;
  if (total === 0) return <Empty>{query ? t("home.nothingFound", { query }) : t("dump.noCalls")}</Empty>;
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  return (
    <div ref={followRoom} className={classes.table}>
      <div className={classes.columns} aria-hidden="true">
        {COLUMNS.map((column) => (
          <span key={column}>{t(`dump.columns.${column}`)}</span>
        ))}
      </div>
      <div
        ref={tall.ref}
        className={classes.list}
        role="listbox"
        tabIndex={0}
        aria-label={t("dump.calls")}
        aria-activedescendant={selectedAt >= first && selectedAt <= last ? `${idBase}-${selectedAt}` : undefined}
        onKeyDown={press}
        data-testid="nodes"
      >
        <div style={{ height: tall.height, position: "relative" }} role="none">
          {shown.map((place) => {
            const row = nodes.rowAt(place);
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the list, which holds the focus
              <div
                key={place}
                id={`${idBase}-${place}`}
                role="option"
                tabIndex={-1}
                aria-selected={row !== undefined && row.name === selected}
                aria-posinset={place + 1}
                aria-setsize={total}
                aria-busy={row === undefined || undefined}
                className={classes.row}
                style={{ transform: `translateY(${tall.offset(place)}px)` }}
                onClick={() => row && onSelect(row.name)}
                title={row && isText(`kinds.${row.kind}`) ? t(`kinds.${row.kind as "api"}`) : undefined}
                data-name={row?.name}
              >
                <span className={classes.order}>{row?.ordinal ?? "…"}</span>
                <span>
                  {row && <MiddleName name={row.name} />}
                  {row?.alone === "fail" && <PrecheckChip brief />}
                </span>
                <Output row={row} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

const COLUMNS = ["order", "call", "output", "norm", "largest"] as const;

/** The first output of a call: what it is, and how large. */
function Output({ row }: { row: DumpNodeRow | undefined }) {
  const { t } = useTranslation();
  const output = row?.output;
  return (
    <>
      <span className="dim">
        {output && <span className={classes.cut}>{describeTensor(output.dtype ?? "", output.shape)}</span>}
      </span>
      {(["norm", "largest"] as const).map((column) => (
        <span
          key={column}
          className={`num ${classes.value}`}
          title={output ? `${t(`dump.columns.${column}`)} ${exactReal(output[column])}` : undefined}
          data-lost={(output && isLost(output[column])) || undefined}
        >
          {output && output[column] !== null ? (
            <>
              <span className="sr">{t(`dump.columns.${column}`)} </span>
              {formatReal(output[column], 4)}
            </>
          ) : null}
        </span>
      ))}
    </>
  );
}

function isLost(value: Real): boolean {
  return value !== null && value !== undefined && !isFiniteReal(value);
}

interface FindingListProps {
  id: string;
  unit: Unit;
  selected: string | null;
  onSelect: (name: string, replace?: boolean) => void;
}

/** Calls that saw NaN, infinity or the limit of their dtype, with what each did to it. */
export function FindingList({ id, unit, selected, onSelect }: FindingListProps) {
  const { t } = useTranslation();
  return (
    <RowList
      pages={useFindings(id, unit, null, true)}
      height={42}
      nameOf={(row) => row.node}
      selected={selected}
      onSelect={onSelect}
      empty={t("dump.noCalls")}
      id="findings"
    >
      {(row) => (
        <span className={classes.finding}>
          <span>
            <PartMark part={row.part} />
            <MiddleName name={row.node} />
          </span>
          <span className="dim">{say(row.evidence, row.evidence_said)}</span>
        </span>
      )}
    </RowList>
  );
}
