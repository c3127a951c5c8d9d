import { SegmentedControl } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useHandChange } from "../../../api/comparison/matches";
import { fetchNodes } from "../../../api/comparison/nodes";
import type { Unit } from "../../../api/records";
import type { NodeDetail, NodeRow } from "../../../api/types";
import { NO_FILTER } from "../../../base/address/address";
import type { Side } from "../../../base/comparison/sides";
import { nameOnSide, onlySide, rankCandidates, UNMATCHED_CAUSES } from "../../../base/comparison/unmatched";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { SearchField } from "../../../widgets/basic/SearchField";
import { Empty, Failure, Loading } from "../../../widgets/basic/States";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import { ClassMark, UnmatchedChip } from "../../../widgets/marks/Mark";
import { useSay } from "../selection/notice";
import { useShownComparison } from "../selection/result";
import { useSelectedCall, useSelection } from "../selection/SelectionProvider";
import classes from "./Matching.module.css";
import { MatchPreview } from "./MatchPreview";

const NEAR = 60;
const SHOWN = 50;

const OTHER: Record<Side, Side> = { target: "golden", golden: "target" };

/** Searches the other side's calls for a partner of the selected call. */
export function MatchSearch() {
  const { node, nodeProblem } = useSelectedCall();
  const { unit } = useSelection();
  if (node && unit) return <Partners key={node.address} unit={unit} node={node} />;
  return nodeProblem ? <Failure problem={nodeProblem} /> : <Loading />;
}

interface PartnersProps {
  unit: Unit;
  node: NodeDetail;
}

function Partners({ unit, node }: PartnersProps) {
  const { t } = useTranslation();
  const say = useSay();
  const { id: comparison } = useShownComparison();
  const { update } = useSelection();
  const only = onlySide(node);
  const [own, setOwn] = useState<Side>(only ?? "target");
  const wanted = OTHER[own];
  const name = nameOnSide(node, own) ?? node.name;
  const [text, setText] = useState("");
  const query = useDebounced(text.trim(), 250);
  const [active, setActive] = useState(0);
  const change = useHandChange(comparison, unit);
  const idBase = useId();
  const list = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const found = useQuery({
    queryKey: ["comparisons", "data", comparison, "partners", unit, node.address, query],
    queryFn: async () => {
      const near = (filter: typeof NO_FILTER) =>
        fetchNodes(comparison, unit, { filter, query, sort: "order" }, node.address, NEAR);
      const [free, any] = await Promise.all([
        near({ ...NO_FILTER, leftovers: [...UNMATCHED_CAUSES] }),
        near(NO_FILTER),
      ]);
      return [...free.items, ...any.items];
    },
    placeholderData: keepPreviousData,
  });
  const rows = rankCandidates(found.data ?? [], wanted, node).slice(0, SHOWN);
  const at = Math.min(active, rows.length - 1);

  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });

  // The dialog may open before its call is loaded; the focus is then on the close button.
  useEffect(() => field.current?.focus(), []);

  const join = (row: NodeRow) => {
    const partner = nameOnSide(row, wanted);
    if (partner === null || change.isPending) return;
    const both = own === "target" ? { target: name, golden: partner } : { target: partner, golden: name };
    change.mutate(
      { kind: "match", ...both },
      {
        onSuccess: () => {
          update({ dialog: null });
          say(t("matching.matched"));
        },
      },
    );
  };

  const press = (event: KeyboardEvent) => {
    const row = rows[at];
    if (event.key === "ArrowDown") setActive(Math.min(rows.length - 1, at + 1));
    else if (event.key === "ArrowUp") setActive(Math.max(0, at - 1));
    else if (event.key === "Enter" && row && !event.nativeEvent.isComposing) join(row);
    else return;
    event.preventDefault();
  };

  return (
    <>
      {only === null && (
        <SegmentedControl
          size="xs"
          mb={6}
          value={own}
          onChange={(side) => setOwn(side as Side)}
          data={(["target", "golden"] as const).map((side) => ({ value: side, label: t(`matching.keep.${side}`) }))}
        />
      )}
      <p className={classes.lead}>
        {t(`comparison.${own}`)}: <span className="mono">{name}</span>
      </p>
      <SearchField
        ref={field}
        data-autofocus
        label={t(`matching.search.${wanted}`)}
        text={text}
        onText={(next) => {
          setText(next);
          setActive(0);
        }}
        onKeyDown={press}
        role="combobox"
        aria-expanded
        aria-controls={`${idBase}-list`}
        aria-activedescendant={rows[at] ? `${idBase}-${rows[at].pair}` : undefined}
        data-testid="partner-search"
      />
      {found.error ? <Failure problem={found.error} onRetry={() => void found.refetch()} /> : null}
      {change.error ? <Failure problem={change.error} /> : null}
      {found.isPending && <Loading />}
      {found.data && rows.length === 0 && !found.isPlaceholderData && (
        <Empty>{query === "" ? t("matching.nobody") : t("home.nothingFound", { query })}</Empty>
      )}
      <div
        ref={list}
        id={`${idBase}-list`}
        className={classes.partners}
        role="listbox"
        tabIndex={-1}
        aria-label={t(`matching.search.${wanted}`)}
        aria-busy={found.isFetching || change.isPending}
        data-testid="partners"
      >
        {rows.map((row, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the search field, which holds the focus
          <div
            key={row.pair}
            id={`${idBase}-${row.pair}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className={classes.partner}
            onClick={() => join(row)}
            onMouseMove={() => index !== at && setActive(index)}
          >
            <span className="num dim" title={t("list.title")}>
              {distance(row.order - node.order)}
            </span>
            <ClassMark name={row.name} cls={row.cls} verdict={row.verdict} />
            <MiddleName name={nameOnSide(row, wanted) ?? row.name} />
            <PartnerNow row={row} own={own} wanted={wanted} />
          </div>
        ))}
      </div>
      {rows[at] && (
        <MatchPreview comparison={comparison} unit={unit} own={own} node={node} candidate={rows[at].address} />
      )}
      <p className={`${classes.lead} dim`}>{t("matching.hint")}</p>
    </>
  );
}

/** The candidate's present partner, or why it has none. */
function PartnerNow({ row, own, wanted }: { row: NodeRow; own: Side; wanted: Side }) {
  const { t } = useTranslation();
  if (onlySide(row) !== null) return <UnmatchedChip cause={row.leftover} side={wanted} />;
  const name = nameOnSide(row, own) ?? "";
  return (
    <span className="dim" title={name}>
      {name === nameOnSide(row, wanted) ? t("matching.takenSame") : t("matching.taken", { name })}
    </span>
  );
}

function distance(calls: number): string {
  return calls > 0 ? `+${calls}` : String(calls).replace("-", "−");
}
