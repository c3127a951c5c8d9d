import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "../../texts/useTranslation";

interface MoreRowsProps {
  /** A list that is read page by page. */
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  variant?: "subtle" | "default";
  /** In place of the usual words. */
  children?: ReactNode;
}

/** Below a list that has a further page: the button that appends it. */
export function MoreRows({ list, variant = "subtle", children }: MoreRowsProps) {
  const { t } = useTranslation();
  if (!list.hasNextPage) return null;
  return (
    <Button
      variant={variant}
      size="compact-xs"
      loading={list.isFetchingNextPage}
      onClick={() => void list.fetchNextPage()}
    >
      {children ?? t("app.more")}
    </Button>
  );
}
