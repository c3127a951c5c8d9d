import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { type Unit, useDumpNodes } from "../../api/queries";
import { MiddleName } from "../../widgets/MiddleName";
import { Empty, Failure, Loading } from "../../widgets/States";
import classes from "./DumpView.module.css";

const ROW = 24;

interface NodeListProps {
  id: string;
  unit: Unit;
  query: string;
  selected: string | null;
  onSelect: (name: string, replace?: boolean) => void;
}

/** Nodes in call order, page by page. */
export function NodeList({ id, unit, query, selected, onSelect }: NodeListProps) {
  const { t, i18n } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const nodes = useDumpNodes(id, unit, query);
  const rows = nodes.data?.pages.flatMap((page) => page.items) ?? [];
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is visible decides what is fetched
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 30 && nodes.hasNextPage && !nodes.isFetching)
      void nodes.fetchNextPage();
  }, [last, rows.length]);

  const press = (event: KeyboardEvent) => {
    const at = rows.findIndex((row) => row.name === selected);
    const goals: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 };
    const goal = goals[event.key];
    if (goal === undefined) return;
    event.preventDefault();
    const next = rows[goal];
    if (!next) return;
    onSelect(next.name, true);
    virtual.scrollToIndex(goal, { align: "auto" });
  };

  if (nodes.error) return <Failure problem={nodes.error} onRetry={() => void nodes.refetch()} />;
  if (nodes.isPending) return <Loading />;
  if (rows.length === 0) return <Empty>{query ? t("home.nothingFound", { query }) : t("dump.noCalls")}</Empty>;
  return (
    <div
      ref={box}
      className={classes.list}
      role="listbox"
      tabIndex={0}
      aria-label={t("dump.calls")}
      onKeyDown={press}
      data-testid="nodes"
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="none">
        {shown.map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the list, which holds the focus
            <div
              key={row.ordinal}
              role="option"
              tabIndex={-1}
              aria-selected={row.name === selected}
              className={classes.row}
              style={{ transform: `translateY(${item.start}px)` }}
              onClick={() => onSelect(row.name)}
              data-name={row.name}
            >
              <span className={classes.order}>{row.ordinal}</span>
              <span>
                <MiddleName name={row.name} />
              </span>
              <span className="dim">
                {i18n.exists(`kinds.${row.kind}`) ? t(`kinds.${row.kind as "api"}`) : row.kind}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
