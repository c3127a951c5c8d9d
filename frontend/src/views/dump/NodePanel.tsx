import { ActionIcon, Tooltip } from "@mantine/core";
import { useDumpNode } from "../../api/dump/nodes";
import { useFindings } from "../../api/dump/overflow";
import type { Unit } from "../../api/records";
import { formatAddress } from "../../base/address/address";
import { callLabel } from "../../base/text/callNames";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../../widgets/basic/CopyButton";
import { Icon } from "../../widgets/basic/Icon";
import { MiddleName } from "../../widgets/basic/MiddleName";
import { Link, useAddress } from "../../widgets/basic/navigation";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import { Stack } from "../../widgets/source/Stack";
import { LeafTable } from "../../widgets/tensors/IoTable";
import classes from "./DumpView.module.css";
import { NodeTrend } from "./NodeTrend";
import { PartMark } from "./PartMark";

interface NodePanelProps {
  id: string;
  unit: Unit;
  name: string | null;
  /** Whether there is more than one step or rank, so that the call has a trend. */
  trend: boolean;
  /** Whether any call here saw NaN, infinity or the limit of a dtype. */
  notable: boolean;
  onSelect: (name: string) => void;
  onReproduce: () => void;
}

export function NodePanel({ id, unit, name, trend, notable, onSelect, onReproduce }: NodePanelProps) {
  const { t } = useTranslation();
  const node = useDumpNode(id, unit, name);
  const found = useFindings(id, unit, name, notable && name !== null).data?.pages[0]?.items[0];
  const [address] = useAddress();
  if (!name) return <Empty>{t("dump.noNode")}</Empty>;
  if (node.error) return <Failure problem={node.error} onRetry={() => void node.refetch()} />;
  if (!node.data) return <Loading />;
  const { data } = node;
  return (
    <div className={classes.detail} data-testid="node" data-node={data.name}>
      <div className={classes.title}>
        <h2 data-testid="selected-name">
          <MiddleName name={data.name} tail={30} />
        </h2>
        <CopyButton text={data.name} label={t("evidence.copyName")} />
        <Tooltip label={`${t("reproduce.title")} (r)`}>
          <ActionIcon size="sm" aria-label={t("reproduce.title")} onClick={onReproduce} data-testid="reproduce">
            <Icon name="play" size={12} />
          </ActionIcon>
        </Tooltip>
      </div>
      <div className={classes.links}>
        {[...data.path, ...data.siblings].map((other) => (
          <button key={other} type="button" className="plain mono" onClick={() => onSelect(other)}>
            {other}
          </button>
        ))}
      </div>
      {found?.node === data.name && (
        <p className={classes.why} data-testid="finding">
          <PartMark part={found.part} /> {say(found.evidence, found.evidence_said)}
          {found.advice && (
            <>
              <br />
              <strong>{t("dump.overflow.todo")}:</strong> {say(found.advice, found.advice_said)}
            </>
          )}
        </p>
      )}
      <h3>{t("evidence.io")}</h3>
      <LeafTable
        items={data.items}
        link={(made) => (
          <Link
            to={`dumps/${id}`}
            search={formatAddress({ ...address, ...unit, node: made.node })}
            className={classes.made}
            title={t(made.inferred ? "dump.madeAlike" : "dump.made", { item: made.item })}
            data-producer={made.node}
          >
            {made.inferred ? "≈ " : "← "}
            {callLabel(made.node)}
          </Link>
        )}
      />
      {data.item_count > data.items.length && (
        <p className="dim">{t("evidence.truncated", { shown: data.items.length, total: data.item_count })}</p>
      )}
      {trend && <NodeTrend id={id} name={data.name} />}
      <div className={classes.stack}>
        <Stack
          label={t("evidence.stack")}
          of={{ texts: data.stack, frames: data.frames }}
          missing={t("evidence.stackNone")}
        />
      </div>
    </div>
  );
}
