import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { IN_FILE } from "../../base/inFile";
import { formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import { MoreRows } from "../basic/MoreRows";
import { SearchField } from "../basic/SearchField";
import { Empty, Failure, Loading } from "../basic/States";
import classes from "./TrendPanel.module.css";

interface TrendPage {
  items: readonly unknown[];
  total: number;
}

interface TrendPanelProps<P extends TrendPage> {
  text: string;
  onText: (text: string) => void;
  /** Beside the search. */
  choices: ReactNode;
  found: UseInfiniteQueryResult<InfiniteData<P>>;
  /** The table; called where there are rows. */
  children: (first: P, rows: P["items"]) => ReactNode;
}

/** Calls over steps: a search and choices, the state of the request, a table, and a button for more rows. */
export function TrendPanel<P extends TrendPage>({ text, onText, choices, found, children }: TrendPanelProps<P>) {
  const { t } = useTranslation();
  const pages = found.data?.pages ?? [];
  const rows = pages.flatMap((page) => page.items);
  const [first] = pages;
  return (
    <div className={classes.map} data-testid="trends">
      <div className={classes.controls}>
        <SearchField
          data-autofocus
          label={t("trends.search")}
          placeholder={t("trends.search")}
          text={text}
          onText={onText}
        />
        {choices}
      </div>
      {found.error && <Failure problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {first && rows.length === 0 && <Empty>{t("trends.empty")}</Empty>}
      {first && rows.length > 0 && children(first, rows)}
      {first && IN_FILE && rows.length < first.total && (
        <p className="dim">{t("file.rows", { held: formatCount(rows.length), total: formatCount(first.total) })}</p>
      )}
      <MoreRows list={found} variant="default">
        {t("trends.more", { shown: formatCount(rows.length), total: formatCount(first?.total) })}
      </MoreRows>
    </div>
  );
}
