import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { addressOf, isLeftover } from "../base/leftovers";
import { formatCount } from "../base/numbers";
import { type Counts, type Entry, type EntryLine, foldSpan, type TreeLine } from "../base/tree";
import { Icon } from "./Icon";
import { ClassMark, MatchChip } from "./Mark";
import { MiddleName } from "./MiddleName";
import { Failure, Loading } from "./States";
import classes from "./TreeView.module.css";
import { useKeys } from "./useKeys";
import type { TreeModel } from "./useTree";

const ROW = 24;
const INDENT = 14;

interface TreeViewProps {
  tree: TreeModel;
  selected: string | null;
  onSelect: (name: string) => void;
  verdicts: boolean;
  label: string;
}

export function TreeView({ tree, selected, onSelect, verdicts, label }: TreeViewProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const idBase = useId();
  const { lines, revealed, loadMore } = tree;
  const [cursor, setCursor] = useState(-1);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    getItemKey: (index) => lines[index]?.key ?? index,
  });

  // A line that is there already is taken at once: a key pressed after a selection is about what was selected.
  // biome-ignore lint/correctness/useExhaustiveDependencies: lines that come later are the reveal's
  useEffect(() => {
    const at = lines.findIndex((line) => line.type === "entry" && addressOf(line.entry) === selected);
    if (at >= 0) setCursor(at);
  }, [selected]);

  useEffect(() => {
    if (revealed < 0) return;
    setCursor(revealed);
    const element = box.current;
    const top = revealed * ROW;
    const visible = element && top >= element.scrollTop && top + 2 * ROW <= element.scrollTop + element.clientHeight;
    if (!visible) virtual.scrollToIndex(revealed, { align: "center" });
  }, [revealed, virtual]);

  const shown = virtual.getVirtualItems();
  // Parents whose "more" line is in view; a text, so that the effect runs only when it changes.
  const wanted = shown
    .map((item) => lines[item.index])
    .filter((line) => line?.type === "more" && !line.loading)
    .map((line) => (line as { parent: number }).parent)
    .join();
  useEffect(() => {
    for (const parent of wanted.split(",").filter(Boolean)) loadMore(Number(parent));
  }, [wanted, loadMore]);

  const act = (line: TreeLine) => {
    if (line.type === "fold") tree.unfold(line.id);
    else if (line.type === "more") tree.loadMore(line.parent);
    else if (line.entry.kind === "virtual") tree.toggle(line.entry.entry);
    else onSelect(addressOf(line.entry));
  };

  const move = (index: number) => {
    const clamped = Math.max(0, Math.min(lines.length - 1, index));
    setCursor(clamped);
    virtual.scrollToIndex(clamped, { align: "auto" });
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
        move(lines.length - 1);
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
              active={item.index === cursor}
              selected={line.type === "entry" && addressOf(line.entry) === selected}
              verdicts={verdicts}
              onAct={() => {
                setCursor(item.index);
                act(line);
              }}
              onToggle={() => line.type === "entry" && tree.toggle(line.entry.entry)}
            />
          );
        })}
      </div>
    </div>
  );
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
  active: boolean;
  selected: boolean;
  verdicts: boolean;
  onAct: () => void;
  onToggle: () => void;
}

function Line({ id, line, top, active, selected, verdicts, onAct, onToggle }: LineProps) {
  const { t } = useTranslation();
  const entry = line.type === "entry" ? line.entry : null;
  const open = entry && entry.children > 0 ? (line as { expanded: boolean }).expanded : undefined;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the tree, which holds the focus
    <div
      id={id}
      className={classes.line}
      style={{ transform: `translateY(${top}px)`, paddingLeft: 4 + line.depth * INDENT }}
      role="treeitem"
      tabIndex={-1}
      aria-level={line.depth + 1}
      aria-selected={selected}
      aria-expanded={line.type === "fold" ? false : open}
      aria-posinset={line.type === "entry" ? line.position : undefined}
      aria-setsize={line.type === "entry" ? line.setSize : undefined}
      data-active={active || undefined}
      data-name={entry?.name}
      onClick={onAct}
    >
      {open !== undefined && (
        // biome-ignore lint/a11y/noStaticElementInteractions: a larger target for the mouse; the tree's arrow keys do the same
        // biome-ignore lint/a11y/useKeyWithClickEvents: as above
        <span
          className={classes.toggle}
          data-toggle
          onClick={(event) => {
            event.stopPropagation();
            onToggle();
          }}
        >
          <Icon name="chevron" size={12} turn={open ? 90 : 0} />
        </span>
      )}
      {open === undefined && (
        <span className={classes.toggle}>{line.type === "fold" && <Icon name="chevron" size={12} />}</span>
      )}
      {line.type === "more" && <span className="dim">{line.loading ? t("app.loading") : t("tree.more")}</span>}
      {line.type === "fold" && <FoldLabel entries={line.entries} turns={line.turns} />}
      {line.type === "entry" && <EntryLabel line={line} verdicts={verdicts} />}
    </div>
  );
}

function FoldLabel({ entries, turns }: { entries: readonly Entry[]; turns: boolean }) {
  const { t } = useTranslation();
  const span = foldSpan(entries[0]?.label ?? "", entries.at(-1)?.label ?? "");
  const text = t("tree.folded", { span, count: entries.length });
  return (
    <span className={`${classes.label} mono dim`} title={t("tree.unfold", { count: entries.length })}>
      {text}
      {turns && <span className={classes.turn}>{t("comparison.backward")}</span>}
    </span>
  );
}

function EntryLabel({ line, verdicts }: { line: EntryLine; verdicts: boolean }) {
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
      {verdicts && <Partner entry={entry} />}
      {verdicts && <Badges entry={entry} counts={entry.counts ?? null} />}
    </>
  );
}

/** How its partner was found where that is not by name, or why it has none. */
function Partner({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  if (isLeftover(entry.leftover)) {
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
  if (leaf || !counts) return <ClassMark cls={entry.cls} />;
  const clean = counts.origin + counts.no + counts.warning === 0;
  return (
    <span className={classes.badges}>
      {counts.origin > 0 && (
        <span className={classes.badge} data-cls="origin" title={t("classes.origin")}>
          ✖{formatCount(counts.origin)}
        </span>
      )}
      {counts.no > 0 && (
        <span className={classes.badge} data-cls="no" title="No">
          {formatCount(counts.no)}
        </span>
      )}
      {counts.warning > 0 && (
        <span className={classes.badge} data-cls="warning" title="Warning">
          !{formatCount(counts.warning)}
        </span>
      )}
      {clean && <ClassMark cls={counts.yes > 0 ? "exact" : "unknown"} />}
    </span>
  );
}
