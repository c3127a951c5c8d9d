import { useTranslation } from "react-i18next";
import { type Unit, useDumpNodes, useFindings } from "../../api/queries";
import { say } from "../../texts/said";
import { MiddleName } from "../../widgets/MiddleName";
import classes from "./DumpView.module.css";
import { PartMark } from "./PartMark";
import { RowList } from "./RowList";

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
  const nodes = useDumpNodes(id, unit, query);
  return (
    <RowList
      pages={nodes}
      height={24}
      nameOf={(row) => row.name}
      selected={selected}
      onSelect={onSelect}
      empty={query ? t("home.nothingFound", { query }) : t("dump.noCalls")}
      id="nodes"
    >
      {(row) => (
        <>
          <span className={classes.order}>{row.ordinal}</span>
          <span>
            <MiddleName name={row.name} />
          </span>
          <span className="dim">{i18n.exists(`kinds.${row.kind}`) ? t(`kinds.${row.kind as "api"}`) : row.kind}</span>
        </>
      )}
    </RowList>
  );
}

/** Calls that saw NaN, infinity or the limit of their dtype, with what each did to it. */
export function FindingList({ id, unit, selected, onSelect }: Omit<NodeListProps, "query">) {
  const { t } = useTranslation();
  return (
    <RowList
      pages={useFindings(id, unit, null, true)}
      height={42}
      nameOf={(row) => row.node}
      selected={selected}
      onSelect={onSelect}
      empty={t("dump.noCalls")}
      id="findings"
    >
      {(row) => (
        <span className={classes.finding}>
          <span>
            <PartMark part={row.part} />
            <MiddleName name={row.node} />
          </span>
          <span className="dim">{say(row.evidence, row.evidence_said)}</span>
        </span>
      )}
    </RowList>
  );
}
