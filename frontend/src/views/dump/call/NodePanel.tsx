import { ActionIcon, Tooltip } from "@mantine/core";
import { useState } from "react";
import { useDumpNode, useDumpSource } from "../../../api/dump/nodes";
import { useFindings } from "../../../api/dump/overflow";
import type { Unit } from "../../../api/records";
import { formatAddress } from "../../../base/address/address";
import { callLabel } from "../../../base/text/callNames";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { CopyButton } from "../../../widgets/basic/CopyButton";
import { Icon } from "../../../widgets/basic/Icon";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Link, useAddress } from "../../../widgets/basic/navigation";
import { Boundary, Empty, Failure, Loading } from "../../../widgets/basic/States";
import { followHeight } from "../../../widgets/basic/sizes";
import { SourceLines, useNoSource } from "../../../widgets/source/SourceLines";
import { Stack } from "../../../widgets/source/Stack";
import { LeafTable } from "../../../widgets/tensors/IoTable";
import classes from "../DumpView.module.css";
import { PartMark } from "../PartMark";
import type { OpenedAt } from "../useOpening";
import { CallAlone } from "./CallAlone";
import { DumpPlots } from "./DumpPlots";
import { NodeTrend } from "./NodeTrend";

interface NodePanelProps {
  id: string;
  unit: Unit;
  name: string | null;
  /** Whether there is more than one step or rank, so that the call has a trend. */
  trend: boolean;
  /** Whether any call here saw NaN, infinity or the limit of a dtype. */
  notable: boolean;
  /** Why the page opened with this call; null: it was chosen. */
  opened: OpenedAt | null;
  /** The call to open with is still looked for. */
  looking: boolean;
  onSelect: (name: string) => void;
  onReproduce: () => void;
  onSay: (words: string) => void;
}

export function NodePanel(props: NodePanelProps) {
  const { id, unit, name, trend, notable, opened, looking, onSelect, onReproduce, onSay } = props;
  const { t } = useTranslation();
  const node = useDumpNode(id, unit, name);
  const source = useDumpSource(id, unit, name);
  const none = useNoSource(source.data, true);
  const found = useFindings(id, unit, name, notable && name !== null).data?.pages[0]?.items[0];
  const [address] = useAddress();
  const [large, setLarge] = useState(false);
  if (looking) return <Loading label={t("dump.looking")} />;
  if (!name) return <Empty>{t("dump.noNode")}</Empty>;
  if (node.error) return <Failure problem={node.error} onRetry={() => void node.refetch()} />;
  if (!node.data) return <Loading />;
  const { data } = node;
  return (
    <div ref={followHeight} className={classes.docked} data-testid="node" data-node={data.name}>
      <div className={classes.scroll}>
        <div className={classes.detail}>
          {opened && (
            <p className={`${classes.opened} dim`} data-testid="opened-at">
              {t(`dump.openedAt.${opened}`)}
            </p>
          )}
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
          <CallAlone id={id} unit={unit} name={data.name} />
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
              aside={none.button}
              missing={t("evidence.stackNone")}
            />
            {none.words}
            {source.error ? (
              <Failure title={t("source.failed")} problem={source.error} onRetry={() => void source.refetch()} />
            ) : (
              source.data && <SourceLines source={source.data} stale={source.isPlaceholderData} alone />
            )}
          </div>
        </div>
      </div>
      <section className={classes.dock} data-large={large || undefined} tabIndex={-1} aria-label={t("evidence.plots")}>
        <Boundary title={t("evidence.plotFailed")} resetKey={`${data.name}/${address.tab}`}>
          <DumpPlots
            id={id}
            unit={unit}
            node={data}
            large={large}
            onLarge={setLarge}
            onSelect={onSelect}
            onSay={onSay}
          />
        </Boundary>
      </section>
    </div>
  );
}
