import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { fetchNodes } from "../../../api/comparison/nodes";
import { useUnitPrecheck } from "../../../api/comparison/prechecks";
import { useReach } from "../../../api/comparison/suspects";
import { NO_FILTER } from "../../../base/address/address";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { SearchField } from "../../../widgets/basic/SearchField";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import { SearchResults } from "../../../widgets/lists/SearchResults";
import { TreeView } from "../../../widgets/lists/TreeView";
import { useTree } from "../../../widgets/lists/useTree";
import { useSelectionNow } from "../selection/Following";
import { useSuspects } from "../selection/OriginsProvider";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Panels.module.css";

const RESULTS = 100;

export function TreePanel() {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { unit, selected: followed, select } = useSelection();
  const { selected } = useSelectionNow();
  const { failing } = useUnitPrecheck(comparison.id, unit);
  const [text, setText] = useState("");
  const query = useDebounced(text.trim(), 250);
  const tree = useTree(
    "comparisons",
    comparison.id,
    unit,
    followed,
    `${comparison.policy}/${comparison.job}`,
    selected,
  );
  // What is drawn is asked about, a moment after it stands still.
  const [drawn, setDrawn] = useState<readonly number[]>([]);
  const { shown } = useSuspects();
  const reach = useReach(comparison.id, unit, shown, { entries: useDebounced(drawn, 120) }).data;
  const reached = useMemo(() => reach && { entries: new Set(reach.entries), name: reach.node }, [reach]);
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
          selected={selected}
          onSelect={select}
          verdicts
          failing={failing}
          label={t("tree.title")}
          reached={reached}
          onShown={setDrawn}
        />
      ) : (
        <SearchResults
          rows={found.data?.items ?? []}
          summary={found.data ? t("tree.results", { total: formatCount(found.data.total) }) : ""}
          problem={found.error}
          selected={selected}
          onSelect={select}
        />
      )}
    </>
  );
}
