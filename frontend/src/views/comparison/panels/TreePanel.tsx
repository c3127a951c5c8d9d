import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fetchNodes } from "../../../api/comparison/nodes";
import type { Comparison } from "../../../api/types";
import { NO_FILTER } from "../../../base/address/address";
import { formatCount } from "../../../base/numbers/format";
import { SearchField } from "../../../widgets/basic/SearchField";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import { SearchResults } from "../../../widgets/lists/SearchResults";
import { TreeView } from "../../../widgets/lists/TreeView";
import { useTree } from "../../../widgets/lists/useTree";
import type { Triage } from "../useTriage";
import classes from "./Panels.module.css";

const RESULTS = 100;

export function TreePanel({ comparison, triage }: { comparison: Comparison; triage: Triage }) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const query = useDebounced(text.trim(), 250);
  const tree = useTree(
    "comparisons",
    comparison.id,
    triage.unit,
    triage.selected,
    `${comparison.policy}/${comparison.job}`,
  );
  const { unit } = triage;
  const found = useQuery({
    queryKey: ["comparisons", "data", comparison.id, "search", unit, query],
    queryFn: () =>
      fetchNodes(
        comparison.id,
        unit ?? { step: 0, rank: 0 },
        { filter: NO_FILTER, query, sort: "order" },
        null,
        RESULTS,
      ),
    enabled: unit !== null && query !== "",
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <div className={classes.head}>
        <SearchField
          className={classes.grow}
          label={t("tree.search")}
          text={text}
          onText={setText}
          data-testid="tree-search"
        />
      </div>
      {query === "" ? (
        <TreeView
          tree={tree}
          selected={triage.selected}
          onSelect={triage.select}
          verdicts
          failing={triage.failing}
          label={t("tree.title")}
        />
      ) : (
        <SearchResults
          rows={found.data?.items ?? []}
          summary={found.data ? t("tree.results", { total: formatCount(found.data.total) }) : ""}
          problem={found.error}
          selected={triage.selected}
          onSelect={triage.select}
        />
      )}
    </>
  );
}
