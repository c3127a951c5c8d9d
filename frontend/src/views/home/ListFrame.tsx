import { Button, CloseButton, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { formatCount } from "../../base/numbers";
import { Icon } from "../../widgets/Icon";
import { Failure, Loading } from "../../widgets/States";
import classes from "./HomeView.module.css";

interface ListFrameProps {
  title: string;
  searchLabel: string;
  search: string;
  onSearch: (text: string) => void;
  query: {
    isPending: boolean;
    error: Error | null;
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    fetchNextPage: () => unknown;
    refetch: () => unknown;
  };
  shown: number;
  total: number;
  empty: ReactNode;
  children: ReactNode;
  testId: string;
  action?: ReactNode;
}

/** Title, search, table, paging and the states of one list of the start page. */
export function ListFrame({
  title,
  searchLabel,
  search,
  onSearch,
  query,
  shown,
  total,
  empty,
  children,
  testId,
  action,
}: ListFrameProps) {
  const { t } = useTranslation();
  const none = !query.isPending && !query.error && shown === 0;
  return (
    <section className="panel" aria-label={title} data-testid={testId}>
      <div className={classes.listHead}>
        <h2>{title}</h2>
        {action}
        <TextInput
          type="search"
          className={classes.search}
          aria-label={searchLabel}
          placeholder={searchLabel}
          leftSection={<Icon name="search" size={12} />}
          rightSection={search && <CloseButton size="xs" aria-label={t("app.clear")} onClick={() => onSearch("")} />}
          value={search}
          onChange={(event) => onSearch(event.currentTarget.value)}
        />
      </div>
      {query.error && <Failure problem={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {none && <div className={classes.empty}>{search === "" ? empty : t("home.nothingFound", { query: search })}</div>}
      {shown > 0 && <div className={classes.scroll}>{children}</div>}
      {shown > 0 && (
        <div className={classes.foot}>
          <span className="num">{t("home.shown", { shown: formatCount(shown), total: formatCount(total) })}</span>
          {query.hasNextPage && (
            <Button
              variant="subtle"
              size="compact-xs"
              loading={query.isFetchingNextPage}
              onClick={() => void query.fetchNextPage()}
            >
              {t("app.more")}
            </Button>
          )}
        </div>
      )}
    </section>
  );
}
