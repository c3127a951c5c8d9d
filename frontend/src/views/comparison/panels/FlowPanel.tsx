import { Kbd } from "@mantine/core";
import { type ReactElement, type ReactNode, useState } from "react";
import { useFlow } from "../../../api/comparison/nodes";
import type { Flow, FlowConsumer, FlowInput, NodeRow } from "../../../api/types";
import { formatAddress } from "../../../base/address/address";
import { isBad } from "../../../base/comparison/verdicts";
import { exactReal, formatError } from "../../../base/numbers/format";
import { apiName, callLabel } from "../../../base/text/callNames";
import { isText } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Link } from "../../../widgets/basic/navigation";
import { Failure, Loading } from "../../../widgets/basic/States";
import { followWidth } from "../../../widgets/basic/sizes";
import { ClassMark } from "../../../widgets/marks/Mark";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./FlowPanel.module.css";
import type { SectionProps } from "./sectionProps";

/** Pixels from which the columns stand beside each other. */
const followRoom = followWidth(420);

/** Rows of a column before "show all". */
const FIRST_ROWS = 5;

/** One step of data flow: producers of the call's inputs, the call, consumers of its outputs. */
export function FlowPanel({ node }: SectionProps) {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { unit } = useSelection();
  const { data, error, refetch } = useFlow(id, unit, node.name);
  return (
    <section
      ref={followRoom}
      id="section-flow"
      className={classes.section}
      tabIndex={-1}
      aria-label={t("evidence.flow.title")}
    >
      <h3 className={classes.title}>{t("evidence.flow.title")}</h3>
      {error ? (
        <Failure problem={error} onRetry={() => void refetch()} />
      ) : data ? (
        <FlowStep flow={data} />
      ) : (
        <Loading />
      )}
    </section>
  );
}

function FlowStep({ flow }: { flow: Flow }) {
  const { t } = useTranslation();
  const made = flow.inputs.filter((input) => input.producer !== null).length;
  const link = (node: NodeRow, rank?: number | null) => <NodeLink node={node} rank={rank} from={flow.node.direction} />;
  return (
    <>
      <Origin flow={flow} link={link} />
      <div className={classes.hop} data-testid="flow">
        <Column title={t("evidence.flow.producers")} count={made} side="producers">
          {flow.inputs.length === 0 && <li className="dim">{t("evidence.flow.noInputs")}</li>}
          <Rows
            rows={flow.inputs.map((input) => (
              <li key={input.pair} className={classes.row}>
                <ArgumentName end={input} />
                {input.producer ? (
                  link(input.producer)
                ) : (
                  <span className="dim">{t(`evidence.flow.untold.${input.untold ?? "not_dumped"}`)}</span>
                )}
              </li>
            ))}
          />
          {flow.input_count > flow.inputs.length && (
            <li className="dim">
              {t("evidence.flow.inputsOf", { shown: flow.inputs.length, total: flow.input_count })}
            </li>
          )}
        </Column>
        <div className={classes.self} title={flow.node.name}>
          <ClassMark name={flow.node.name} cls={flow.node.cls} verdict={flow.node.verdict} />
          <span className="mono">{shortName(flow.node.name)}</span>
        </div>
        <Column title={t("evidence.flow.consumers")} count={flow.consumer_count} side="consumers">
          {flow.consumers.length === 0 && <li className="dim">{t("evidence.flow.notPassed")}</li>}
          <Rows
            rows={flow.consumers.map((one) => (
              <li key={one.pair} className={classes.row}>
                <ArgumentName end={one} />
                {link(one.consumer)}
              </li>
            ))}
          />
          {flow.consumer_count > flow.consumers.length && (
            <li className="dim">
              {t("evidence.flow.consumersOf", { shown: flow.consumers.length, total: flow.consumer_count })}
            </li>
          )}
        </Column>
      </div>
    </>
  );
}

/** Where what differs came from, as the key p goes. */
function Origin({ flow, link }: { flow: Flow; link: (node: NodeRow, rank?: number | null) => ReactElement }) {
  const { t } = useTranslation();
  const { source, node } = flow;
  if (source) {
    const [before, after] = t(`evidence.flow.way.${source.way}`, { rank: source.rank }).split("<node/>");
    return (
      <p className={classes.source} data-testid="flow-source" data-way={source.way}>
        {before}
        {link(source.node, source.rank)}
        {after}{" "}
        <Kbd size="xs" title={t("keys.flow")}>
          p
        </Kbd>
      </p>
    );
  }
  if (!isBad(node.cls) || node.match === "none") return null;
  const dirty = flow.inputs.some((input) => input.verdict === "no" || input.verdict === "warning");
  return (
    <p className={classes.source} data-testid="flow-source">
      {t(dirty ? "evidence.flow.beginsUnseen" : "evidence.flow.begins")}
    </p>
  );
}

interface ColumnProps {
  title: string;
  count: number;
  side: "producers" | "consumers";
  children: ReactNode;
}

function Column({ title, count, side, children }: ColumnProps) {
  return (
    <div className={classes.column} data-side={side}>
      <h4 className={classes.heading}>
        {title} {count > 0 && <span className="dim num">{count}</span>}
      </h4>
      <ul className={classes.list} data-testid={`flow-${side}`}>
        {children}
      </ul>
    </div>
  );
}

function Rows({ rows }: { rows: ReactElement[] }) {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  return (
    <>
      {all ? rows : rows.slice(0, FIRST_ROWS)}
      {rows.length > FIRST_ROWS && (
        <li>
          <button type="button" className={`plain ${classes.all}`} onClick={() => setAll(!all)}>
            {all ? t("evidence.showLess") : t("evidence.showAll", { count: rows.length })}
          </button>
        </li>
      )}
    </>
  );
}

/** Which argument it is: of the call itself on the left, of the consumer on the right. */
function ArgumentName({ end }: { end: FlowInput | FlowConsumer }) {
  const { t } = useTranslation();
  const role = isText(`roles.${end.role}`) ? t(`roles.${end.role as "input"}`) : end.role;
  return (
    <span className={`${classes.place} dim`} title={end.made ? `${end.made} → ${end.item}` : end.item}>
      {end.path ? `${role} ${end.path}` : role}
    </span>
  );
}

interface NodeLinkProps {
  node: NodeRow;
  /** Where the node is, unless on the rank that is shown. */
  rank?: number | null | undefined;
  /** Direction of the call next to the link; shown only where the linked call has another one. */
  from: string;
}

function NodeLink({ node, rank, from }: NodeLinkProps) {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { address } = useSelection();
  const here = { ...address, node: node.address };
  const search = formatAddress(typeof rank === "number" ? { ...here, rank } : here);
  const error = t("list.score", { error: exactReal(node.out_error), score: exactReal(node.out_score) });
  const turned = node.direction !== from && (node.direction === "forward" || node.direction === "backward");
  return (
    <Link to={`comparisons/${comparison.id}`} search={search} className={classes.link} data-node={node.name}>
      <ClassMark name={node.name} cls={node.cls} verdict={node.verdict} />
      <MiddleName name={callLabel(node.name)} title={node.name} />
      {turned && <span className="dim">{t(`comparison.${node.direction as "forward"}`)}</span>}
      <span className="num" title={error}>
        {formatError(node.out_error, node.out_score)}
      </span>
    </Link>
  );
}

/** `Functional.softmax.1.forward` -> `softmax`, `Module.layers.1.attn.Attn.forward.0` -> `Attn`. */
function shortName(name: string): string {
  const parts = name.split(".");
  if (parts[0] === "Module") return parts.at(-3) ?? name;
  return apiName(name).split(".").at(-1) ?? name;
}
