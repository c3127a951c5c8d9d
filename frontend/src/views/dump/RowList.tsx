import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import { useTranslation } from "../../texts/useTranslation";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import classes from "./DumpView.module.css";

interface Pages<Row> {
  data: { pages: { items: Row[] }[] } | undefined;
  error: Error | null;
  isPending: boolean;
  isFetching: boolean;
  hasNextPage: boolean;
  fetchNextPage: () => unknown;
  refetch: () => unknown;
}

interface RowListProps<Row> {
  pages: Pages<Row>;
  height: number;
  nameOf: (row: Row) => string;
  selected: string | null;
  onSelect: (name: string, replace?: boolean) => void;
  empty: string;
  id: string;
  children: (row: Row) => ReactNode;
}

/** Calls one below the other, read page by page. */
export function RowList<Row extends { ordinal: number }>(props: RowListProps<Row>) {
  const { pages, height, nameOf, selected, onSelect, empty, id, children } = props;
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const rows = pages.data?.pages.flatMap((page) => page.items) ?? [];
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 12,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is visible decides what is fetched
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 30 && pages.hasNextPage && !pages.isFetching)
      void pages.fetchNextPage();
  }, [last, rows.length]);

  const press = (event: KeyboardEvent) => {
    const at = rows.findIndex((row) => nameOf(row) === selected);
    const goals: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 };
    const goal = goals[event.key];
    if (goal === undefined) return;
    event.preventDefault();
    const next = rows[goal];
    if (!next) return;
    onSelect(nameOf(next), true);
    virtual.scrollToIndex(goal, { align: "auto" });
  };

  if (pages.error) return <Failure problem={pages.error} onRetry={() => void pages.refetch()} />;
  if (pages.isPending) return <Loading />;
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  return (
    <div
      ref={box}
      className={classes.list}
      role="listbox"
      tabIndex={0}
      aria-label={t("dump.calls")}
      onKeyDown={press}
      data-testid={id}
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
              aria-selected={nameOf(row) === selected}
              className={classes.row}
              style={{ transform: `translateY(${item.start}px)`, height }}
              onClick={() => onSelect(nameOf(row))}
              data-name={nameOf(row)}
            >
              {children(row)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
