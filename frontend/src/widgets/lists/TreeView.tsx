import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  memo,
  type ReactNode,
  useCallback,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import type { FailingCalls } from "../../api/comparison/prechecks";
import { addressOf, isUnmatchedCause } from "../../base/comparison/unmatched";
import { verdictLabel } from "../../base/comparison/verdicts";
import { IN_FILE } from "../../base/inFile";
import {
  type Counts,
  type Entry,
  type EntryLine,
  type FoldLine,
  foldCurve,
  foldSpan,
  foldTrouble,
  indentation,
  type TreeLine,
} from "../../base/lists/treeLines";
import { formatCount, formatError } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";
import { MiddleName } from "../basic/MiddleName";
import { Failure, Loading } from "../basic/States";
import { useKeys } from "../basic/useKeys";
import { ClassMark, MatchChip } from "../marks/Mark";
import { FailingMark } from "../marks/PrecheckMark";
import classes from "./TreeView.module.css";
import { linesIn, ROW, useKeepScroll, visibleLines } from "./useKeepScroll";
import type { TreeModel } from "./useTree";

interface TreeViewProps {
  tree: TreeModel;
  selected: string | null;
  onSelect: (name: string) => void;
  verdicts: boolean;
  /** Calls that fail alone. */
  failing?: FailingCalls;
  label: string;
  /** More content at the end of a row. */
  mark?: (entry: Entry) => ReactNode;
  /** Entries that are or hold a call which inherits the difference of the call named here. */
  reached?: { entries: ReadonlySet<number>; name: string };
  /** Called with the entries that are drawn, whenever others are. */
  onShown?: (entries: readonly number[]) => void;
}

export function TreeView({
  tree,
  selected,
  onSelect,
  verdicts,
  failing,
  label,
  mark,
  reached,
  onShown,
}: TreeViewProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const idBase = useId();
  const { lines, revealed, way, loadMore, stay } = tree;
  // By key, as lines above it come and go. If its line is gone (a missing part was loaded), the next line takes its place.
  const [cursorKey, setCursorKey] = useState<string | null>(null);
  const cursorAt = useRef(-1);
  const cursor = useMemo(() => {
    const found = lines.findIndex((line) => line.key === cursorKey);
    if (found >= 0 || cursorKey === null) cursorAt.current = found;
    return Math.min(cursorAt.current, lines.length - 1);
  }, [lines, cursorKey]);
  const toEnd = useRef(false);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    getItemKey: (index) => lines[index]?.key ?? index,
  });

  // A loaded line is selected at once, so a key pressed next acts on it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: lines that come later are the reveal's
  useEffect(() => {
    const at = lines.findIndex((line) => line.type === "entry" && addressOf(line.entry) === selected);
    if (at >= 0) setCursorKey(lines[at]?.key ?? null);
  }, [selected]);

  useKeepScroll(box, lines, cursorKey);

  // Once for every request: a row that is closed and opened again around the node does not lead to it again.
  const followed = useRef<readonly number[] | null>(null);
  useEffect(() => {
    if (revealed < 0 || way.length === 0 || followed.current === way) return;
    followed.current = way;
    setCursorKey(lines[revealed]?.key ?? null);
    const element = box.current;
    const top = revealed * ROW;
    const visible = element && top >= element.scrollTop && top + 2 * ROW <= element.scrollTop + element.clientHeight;
    if (!visible) virtual.scrollToIndex(revealed, { align: "center" });
  }, [revealed, way, lines, virtual]);

  const shown = virtual.getVirtualItems();
  // As the list of lines measured it last: to ask the page for it would have it laid out in the middle of drawing.
  const seen = linesIn(virtual.scrollOffset ?? 0, virtual.scrollRect?.height ?? 0);
  const { shift, step } = indentation(lines.slice(seen.first, seen.end).map((line) => line.depth));

  // What is missing in view, or a page below it, is read next to the line that the reader is at. Lines that have just come may
  // have moved the view.
  const range = `${shown[0]?.index} ${shown.at(-1)?.index}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is drawn decides what is looked at
  useEffect(() => {
    if (toEnd.current) return;
    const { first, end } = visibleLines(box.current);
    const reader = cursor >= first && cursor < end ? cursor : first;
    for (const [offset, line] of lines.slice(first, 2 * end - first).entries()) {
      if (line.type !== "more" || line.loading) continue;
      const above = first + offset < reader || (offset === 0 && reader === first);
      loadMore(line, above ? "last" : "first");
    }
  }, [range, lines, loadMore]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: what is drawn decides
  useEffect(() => {
    onShown?.(
      shown.flatMap(({ index }) => {
        const line = lines[index];
        return entryOf(line) ?? [];
      }),
    );
  }, [range, lines, onShown]);

  // `End` goes to the last child, also where those before it are not here.
  useEffect(() => {
    const last = lines.at(-1);
    if (!toEnd.current || last?.type === "more") return;
    toEnd.current = false;
    setCursorKey(last?.key ?? null);
    virtual.scrollToIndex(lines.length - 1, { align: "auto" });
  }, [lines, virtual]);

  const act = (line: TreeLine) => {
    if (line.type === "fold") tree.unfold(line.id);
    else if (line.type === "more") tree.loadMore(line, "first");
    else if (line.entry.kind === "virtual") tree.toggle(line.entry.entry);
    else onSelect(addressOf(line.entry));
  };

  const latest = useRef(act);
  latest.current = act;
  const pick = useCallback((line: TreeLine) => {
    setCursorKey(line.key);
    latest.current(line);
  }, []);

  const move = (index: number) => {
    stay();
    const clamped = Math.max(0, Math.min(lines.length - 1, index));
    setCursorKey(lines[clamped]?.key ?? null);
    virtual.scrollToIndex(clamped, { align: "auto" });
  };
  const page = Math.max(1, Math.floor((virtual.scrollRect?.height ?? 0) / ROW) - 1);
  const end = () => {
    const last = lines.at(-1);
    move(lines.length - 1);
    if (last?.type !== "more") return;
    toEnd.current = true;
    loadMore(last, "end");
  };

  const expand = () => {
    const line = lines[cursor];
    if (line?.type === "fold") tree.unfold(line.id);
    else if (line?.type === "entry" && line.entry.children > 0 && !line.expanded) tree.toggle(line.entry.entry, true);
    else move(cursor + 1);
  };

  const collapse = () => {
    const line = lines[cursor];
    if (line?.type === "entry" && line.expanded) tree.toggle(line.entry.entry, false);
    else if (line) move(parentLine(lines, cursor));
  };
  useKeys({ collapse, expand });

  const press = (event: KeyboardEvent) => {
    const line = lines[cursor];
    switch (event.key) {
      case "ArrowDown":
        move(cursor + 1);
        break;
      case "ArrowUp":
        move(cursor - 1);
        break;
      case "Home":
        move(0);
        break;
      case "End":
        end();
        break;
      case "PageDown":
        move(cursor + page);
        break;
      case "PageUp":
        move(cursor - page);
        break;
      case "ArrowRight":
        expand();
        break;
      case "ArrowLeft":
        collapse();
        break;
      case "Enter":
      case " ":
        if (line) act(line);
        break;
      default:
        return;
    }
    event.preventDefault();
  };

  if (tree.problem) return <Failure problem={tree.problem} onRetry={tree.retry} />;
  if (lines.length === 0) return <p className={`${classes.empty} dim`}>{t("tree.empty")}</p>;
  if (lines.length === 1 && lines[0]?.type === "more") return <Loading />;
  return (
    <div
      ref={box}
      className={classes.box}
      role="tree"
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={cursor >= 0 ? `${idBase}-${cursor}` : undefined}
      onKeyDown={press}
      onPointerDown={stay}
      onWheel={stay}
      data-testid="tree"
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="none">
        {shown.map((item) => {
          const line = lines[item.index] as TreeLine;
          return (
            <Line
              key={item.key}
              id={`${idBase}-${item.index}`}
              line={line}
              top={item.start}
              shift={shift}
              indent={step}
              active={item.index === cursor}
              selected={line.type === "entry" && addressOf(line.entry) === selected}
              verdicts={verdicts}
              failing={failing}
              mark={mark}
              reachedFrom={reached?.entries.has(entryOf(line) ?? -1) ? reached.name : null}
              onAct={pick}
              onToggle={tree.toggle}
            />
          );
        })}
      </div>
    </div>
  );
}

/** What a line stands for; of a fold its first entry, of others nothing. */
function entryOf(line: TreeLine | undefined): number | null {
  if (line?.type === "entry") return line.entry.entry;
  return line?.type === "fold" ? (line.entries[0]?.entry ?? null) : null;
}

function parentLine(lines: readonly TreeLine[], from: number): number {
  const depth = lines[from]?.depth ?? 0;
  for (let index = from - 1; index >= 0; index -= 1) if ((lines[index]?.depth ?? 0) < depth) return index;
  return from;
}

interface LineProps {
  id: string;
  line: TreeLine;
  top: number;
  /** Levels that all lines in view are moved left by. */
  shift: number;
  /** Pixels of one level. */
  indent: number;
  active: boolean;
  selected: boolean;
  verdicts: boolean;
  failing: FailingCalls | undefined;
  mark: TreeViewProps["mark"];
  /** The call whose difference it inherits. */
  reachedFrom: string | null;
  onAct: (line: TreeLine) => void;
  onToggle: (entry: number) => void;
}

const Line = memo(function Line(props: LineProps) {
  const { id, line, top, shift, indent, active, selected, verdicts, failing, mark, reachedFrom, onAct, onToggle } =
    props;
  const { t } = useTranslation();
  const entry = line.type === "entry" ? line.entry : null;
  const open = entry && entry.children > 0 ? (line as { expanded: boolean }).expanded : undefined;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the tree, which holds the focus
    <div
      id={id}
      className={classes.line}
      style={{ transform: `translateY(${top}px)`, paddingLeft: 4 + Math.max(0, line.depth - shift) * indent }}
      role="treeitem"
      tabIndex={-1}
      aria-level={line.depth + 1}
      aria-selected={selected}
      aria-expanded={line.type === "fold" ? false : open}
      aria-posinset={line.type === "entry" ? line.position : undefined}
      aria-setsize={line.type === "entry" ? line.setSize : undefined}
      data-active={active || undefined}
      data-name={entry?.name}
      data-reached={reachedFrom !== null || undefined}
      onClick={() => onAct(line)}
    >
      {open !== undefined && (
        // biome-ignore lint/a11y/noStaticElementInteractions: a larger target for the mouse; the tree's arrow keys do the same
        // biome-ignore lint/a11y/useKeyWithClickEvents: as above
        <span
          className={classes.toggle}
          data-toggle
          onClick={(event) => {
            event.stopPropagation();
            if (entry) onToggle(entry.entry);
          }}
        >
          <Icon name="chevron" size={12} turn={open ? 90 : 0} />
        </span>
      )}
      {open === undefined && (
        <span className={classes.toggle}>{line.type === "fold" && <Icon name="chevron" size={12} />}</span>
      )}
      {shift > 0 && <span className={`${classes.depth} dim`}>{line.depth + 1}</span>}
      {line.type === "more" && (
        <span className="dim">
          {line.loading
            ? t("app.loading")
            : IN_FILE
              ? t("file.treeMore", { count: line.hidden, total: formatCount(line.hidden) })
              : t("tree.more", { total: formatCount(line.hidden) })}
        </span>
      )}
      {line.type === "fold" && <FoldLabel line={line} />}
      {line.type === "entry" && <EntryLabel line={line} verdicts={verdicts} failing={failing} />}
      {line.type === "entry" && mark?.(line.entry)}
      {reachedFrom !== null && (
        <span className={classes.reached} title={t("suspects.inherits", { name: reachedFrom })}>
          <span aria-hidden="true">↳</span>
          <span className="sr">{t("suspects.inherits", { name: reachedFrom })}</span>
        </span>
      )}
    </div>
  );
});

function FoldLabel({ line: { entries, dirty, turns } }: { line: FoldLine }) {
  const { t } = useTranslation();
  const span = foldSpan(entries[0]?.label ?? "", entries.at(-1)?.label ?? "");
  // The class is left to the hint where errors need the room.
  const text = t("tree.folded", { span: dirty ? span.replace(/ \([^()]*\)$/, "") : span, count: entries.length });
  const hint = t(dirty ? "tree.unfoldDirty" : "tree.unfold", { count: entries.length });
  return (
    <>
      <span className={`${classes.label} mono dim`} title={dirty ? `${span}\n${hint}` : hint}>
        {text}
        {turns && <span className={classes.turn}>{t("comparison.backward")}</span>}
      </span>
      {dirty && <Trouble entries={entries} />}
    </>
  );
}

const CURVE = { width: 36, height: 14 };

/** The error from layer to layer, and how much is not right in all of them. */
function Trouble({ entries }: { entries: readonly Entry[] }) {
  const { t } = useTranslation();
  const { no, warning, worst } = useMemo(() => foldTrouble(entries), [entries]);
  const points = useMemo(
    () =>
      foldCurve(entries, CURVE.width / 2)
        .map(([x, y]) => `${(x * CURVE.width).toFixed(1)},${(1 + y * (CURVE.height - 2)).toFixed(1)}`)
        .join(" "),
    [entries],
  );
  const words =
    worst && t("tree.foldedWorst", { name: worst.label, error: formatError(null, worst.out_score ?? null) });
  return (
    <span className={classes.badges} title={words ?? undefined} data-testid="fold-trouble">
      {points && (
        <svg className={classes.curve} width={CURVE.width} height={CURVE.height} aria-hidden="true">
          <polyline points={points} />
        </svg>
      )}
      {words && <span className="sr">{words}</span>}
      {no > 0 && (
        <span className={classes.badge} data-cls="no">
          {formatCount(no)}
          <span className="sr"> {verdictLabel("no")}</span>
        </span>
      )}
      {warning > 0 && (
        <span className={classes.badge} data-cls="warning">
          !{formatCount(warning)}
          <span className="sr"> {verdictLabel("warning")}</span>
        </span>
      )}
    </span>
  );
}

function EntryLabel({ line, verdicts, failing }: { line: EntryLine; verdicts: boolean; failing?: FailingCalls }) {
  const { t } = useTranslation();
  const { entry } = line;
  const module = entry.kind === "module" || (entry.kind === "virtual" && entry.children > 0);
  return (
    <>
      <span
        className={classes.label}
        data-module={module || undefined}
        data-virtual={entry.kind === "virtual" || undefined}
      >
        <MiddleName name={entry.label || entry.name} tail={module ? 12 : undefined} title={entry.name} />
        {line.turns && <span className={classes.turn}>{t("comparison.backward")}</span>}
      </span>
      <FailingMark failing={failing} name={addressOf(entry)} brief />
      {verdicts && <Partner entry={entry} />}
      {verdicts && <Badges entry={entry} counts={entry.counts ?? null} />}
    </>
  );
}

/** How its partner was found where that is not by name, or why it has none. */
function Partner({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  if (isUnmatchedCause(entry.leftover)) {
    return (
      <span className={classes.partner} title={t(`leftoverHelp.${entry.leftover}`)} data-testid="tree-leftover">
        {t(`leftovers.${entry.leftover}`)}
      </span>
    );
  }
  if (!entry.match || entry.match === "exact" || entry.match === "none") return null;
  return <MatchChip match={entry.match} confidence={entry.confidence ?? null} brief />;
}

function Badges({ entry, counts }: { entry: Entry; counts: Counts | null }) {
  const { t } = useTranslation();
  const leaf = entry.children === 0;
  if (leaf || !counts) return <ClassMark name={entry.name} cls={entry.cls} verdict={entry.verdict} />;
  const clean = counts.origin + counts.no + counts.warning === 0;
  return (
    <span className={classes.badges}>
      {counts.origin > 0 && (
        <span className={classes.badge} data-cls="origin" title={t("classes.origin")}>
          ✖{formatCount(counts.origin)}
          <span className="sr"> {t("classes.origin")}</span>
        </span>
      )}
      {counts.no > 0 && (
        <span className={classes.badge} data-cls="no" title="No">
          {formatCount(counts.no)}
          <span className="sr"> {verdictLabel("no")}</span>
        </span>
      )}
      {counts.warning > 0 && (
        <span className={classes.badge} data-cls="warning" title="Warning">
          !{formatCount(counts.warning)}
          <span className="sr"> {verdictLabel("warning")}</span>
        </span>
      )}
      {clean && <ClassMark cls={counts.yes > 0 ? "exact" : "unknown"} />}
    </span>
  );
}
