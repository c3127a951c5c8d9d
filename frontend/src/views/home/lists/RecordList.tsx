import type { InfiniteData } from "@tanstack/react-query";
import { memo, type ReactNode, useState } from "react";
import type { ListOrder, Page } from "../../../api/types";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { MoreRows } from "../../../widgets/basic/MoreRows";
import { SearchField } from "../../../widgets/basic/SearchField";
import { Failure, Loading } from "../../../widgets/basic/States";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import classes from "../HomeView.module.css";

interface Rows<T> {
  data: InfiniteData<Page<T>> | undefined;
  isPending: boolean;
  isPlaceholderData: boolean;
  error: Error | null;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
  refetch: () => unknown;
}

export interface Column<T> {
  key: string;
  title: string;
  cell: (row: T) => ReactNode;
  /** Read only by screen readers, as with a column of buttons. */
  hidden?: boolean;
  number?: boolean;
  /** Orders a click on the title goes through. */
  orders?: readonly ListOrder[];
}

interface RecordListProps<T> {
  title: string;
  searchLabel: string;
  testId: string;
  useRows: (query: string, order: ListOrder) => Rows<T>;
  /** The same array as long as they show the same: other ones draw all rows anew. */
  columns: readonly Column<T>[];
  /** Shown while there are no records at all. */
  empty: ReactNode;
  action?: ReactNode;
}

/** A list of the start page: searched, sorted and paged by the server, with every state it can be in. */
export function RecordList<T extends { id: string }>(props: RecordListProps<T>) {
  const { title, searchLabel, testId, useRows, columns, empty, action } = props;
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const [order, setOrder] = useState<ListOrder>("-created");
  const search = useDebounced(text.trim(), 250);
  const query = useRows(search, order);
  const rows = query.data?.pages.flatMap((page) => page.items) ?? [];
  const total = query.data?.pages[0]?.total ?? 0;
  const none = !query.isPending && !query.error && rows.length === 0;
  return (
    <section className="panel" aria-label={title} data-testid={testId}>
      <div className={classes.listHead}>
        <h2>{title}</h2>
        {action}
        <SearchField className={classes.search} label={searchLabel} text={text} onText={setText} />
      </div>
      {query.error && <Failure problem={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {none && <div className={classes.empty}>{search === "" ? empty : t("home.nothingFound", { query: search })}</div>}
      {rows.length > 0 && (
        <>
          {/* biome-ignore lint/a11y/useSemanticElements: a box that scrolls; a section would be a second landmark of that name */}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
          <div className={classes.scroll} role="group" tabIndex={0} aria-label={title}>
            <table className={classes.table} aria-busy={query.isPlaceholderData}>
              <thead>
                <tr>
                  {columns.map((column) => (
                    <Title key={column.key} column={column} order={order} onOrder={setOrder} />
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <Row key={row.id} row={row} columns={columns} />
                ))}
              </tbody>
            </table>
          </div>
          <div className={classes.foot}>
            <span className="num">
              {t("home.shown", { shown: formatCount(rows.length), total: formatCount(total) })}
            </span>
            <MoreRows list={query} />
          </div>
        </>
      )}
    </section>
  );
}

interface RowProps<T> {
  row: T;
  columns: readonly Column<T>[];
}

/** Drawn anew where the server says something else of it: what is typed, sent or picked elsewhere changes none of a hundred rows. */
const Row = memo(function Row<T extends { id: string }>({ row, columns }: RowProps<T>) {
  return (
    <tr data-id={row.id}>
      {columns.map((column) => (
        <td key={column.key} className={column.number ? "num" : undefined} data-column={column.key}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}) as <T extends { id: string }>(props: RowProps<T>) => ReactNode;

interface TitleProps<T> {
  column: Column<T>;
  order: ListOrder;
  onOrder: (order: ListOrder) => void;
}

function Title<T>({ column, order, onOrder }: TitleProps<T>) {
  const { title, hidden, number, orders } = column;
  const className = number ? "num" : undefined;
  if (!orders) {
    return (
      <th scope="col" className={className}>
        {hidden ? <span className="sr">{title}</span> : title}
      </th>
    );
  }
  const at = orders.indexOf(order);
  const down = order.startsWith("-");
  return (
    <th scope="col" className={className} aria-sort={at < 0 ? undefined : down ? "descending" : "ascending"}>
      <button
        type="button"
        className={`plain ${classes.order}`}
        onClick={() => onOrder(orders[(at + 1) % orders.length] ?? order)}
      >
        {title} <span aria-hidden="true">{at < 0 ? "↕" : down ? "↓" : "↑"}</span>
      </button>
    </th>
  );
}
