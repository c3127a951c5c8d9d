import { SegmentedControl } from "@mantine/core";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { fetchNodes, useStrip } from "../../api/comparison/nodes";
import type { Comparison, Job } from "../../api/types";
import { NO_FILTER } from "../../base/address/address";
import { onlySide } from "../../base/comparison/unmatched";
import { JobBar } from "../../widgets/basic/JobBar";
import { Splitter, useSplit } from "../../widgets/basic/Splitter";
import { Boundary, Failure } from "../../widgets/basic/States";
import { useKeys } from "../../widgets/basic/useKeys";
import { useWidth } from "../../widgets/basic/useWidth";
import { OrderStrip } from "../../widgets/lists/OrderStrip";
import { Header } from "../../widgets/page/Header";
import { HelpOverlay } from "../../widgets/page/HelpOverlay";
import { Palette } from "../../widgets/page/Palette";
import { ReproduceDialog, type ScriptOf } from "../../widgets/source/ReproduceDialog";
import { SourceDialog, type SourceOf } from "../../widgets/source/SourceDialog";
import { Banner } from "./banner/Banner";
import { Controls } from "./Controls";
import { AssistantDialog } from "./dialogs/AssistantDialog";
import { WaitingMatches } from "./dialogs/MatchActions";
import { MatchDialog } from "./dialogs/MatchDialog";
import { MatchesDialog } from "./dialogs/MatchesDialog";
import { PolicyDialog } from "./dialogs/PolicyDialog";
import { TrendsDialog } from "./dialogs/TrendsDialog";
import { EvidencePanel } from "./panels/EvidencePanel";
import { ListPanel } from "./panels/ListPanel";
import { TreePanel } from "./panels/TreePanel";
import { PlanDialog } from "./plan/PlanNotes";
import classes from "./Triage.module.css";
import { type Triage as TriageData, useTriage } from "./useTriage";

const PANELS = ["tree", "list", "evidence"] as const;
type Panel = (typeof PANELS)[number];

/** Part of the window's width, within bounds. */
function share(part: number, least: number, most: number): number {
  return Math.round(Math.min(most, Math.max(least, window.innerWidth * part)));
}

/** Banner, call-order strip, tree, list and evidence: one selection, nothing to click before the answer is there. */
export function Triage({ comparison, judging }: { comparison: Comparison; judging: Job | undefined }) {
  const { t } = useTranslation();
  const renames = (comparison.options.rename ?? []) as string[];
  const triage = useTriage(comparison.id, renames.length === 0);
  const [help, setHelp] = useState(false);
  const [panel, setPanel] = useState<Panel>("list");
  const stripBox = useRef<HTMLDivElement>(null);
  const width = useWidth(stripBox);
  const strip = useStrip(comparison.id, triage.unit, Math.max(0, width));
  const left = useSplit("tree", share(0.19, 244, 340), 160, 620);
  const right = useSplit("evidence", share(0.36, 460, 760), 320, 1100);
  useKeys({ help: () => setHelp(true) });

  const { address, update, node, selected, calls } = triage;
  const order = node?.order ?? calls.rowAt(calls.selectedAt)?.order ?? null;
  return (
    <div className={classes.screen}>
      <Header>
        <Controls comparison={comparison} summary={triage.summary} triage={triage} onHelp={() => setHelp(true)} />
      </Header>
      {judging && <JobBar job={judging} label={t("comparison.rejudging")} />}
      <main id="main" className={classes.main} tabIndex={-1}>
        {triage.summaryProblem && <Failure problem={triage.summaryProblem} />}
        <Banner triage={triage} comparison={comparison} />
        <WaitingMatches comparison={comparison.id} triage={triage} />
        <section className={`panel ${classes.strip}`} aria-label={t("comparison.strip")}>
          <OrderStrip
            box={stripBox}
            width={width}
            strip={strip.data}
            selected={order}
            range={address.filter.range}
            onPick={(bucket) => void triage.pickOrder(bucket.seq)}
            onRange={(range) => update({ filter: { ...address.filter, range } })}
          />
        </section>
        <SegmentedControl
          className={classes.switch}
          size="xs"
          value={panel}
          onChange={(value) => setPanel(value as Panel)}
          data={PANELS.map((name) => ({ value: name, label: t(`comparison.panels.${name}`) }))}
        />
        <div
          className={classes.panels}
          data-panel={panel}
          style={{ gridTemplateColumns: `${left.size}px 8px minmax(280px, 1fr) 8px ${right.size}px` }}
        >
          <section className={`panel ${classes.panel}`} data-name="tree" aria-label={t("comparison.panels.tree")}>
            <Boundary title={t("app.crashed")}>
              <TreePanel comparison={comparison} triage={triage} />
            </Boundary>
          </section>
          <Splitter split={left} label={t("comparison.splitter", { panel: t("comparison.panels.tree") })} />
          <section className={`panel ${classes.panel}`} data-name="list" aria-label={t("comparison.panels.list")}>
            <Boundary title={t("app.crashed")}>
              <ListPanel triage={triage} />
            </Boundary>
          </section>
          <Splitter
            split={right}
            reversed
            label={t("comparison.splitter", { panel: t("comparison.panels.evidence") })}
          />
          <section
            className={`panel ${classes.panel}`}
            data-name="evidence"
            aria-label={t("comparison.panels.evidence")}
          >
            <Boundary title={t("app.crashed")} resetKey={selected ?? ""}>
              <EvidencePanel comparison={comparison} triage={triage} />
            </Boundary>
          </section>
        </div>
      </main>
      <output className={classes.notice} data-shown={triage.notice !== "" || undefined} data-testid="notice">
        {triage.notice}
      </output>
      <AssistantDialog comparison={comparison} triage={triage} />
      <MatchDialog comparison={comparison.id} triage={triage} />
      <TrendsDialog comparison={comparison.id} triage={triage} />
      <MatchesDialog comparison={comparison.id} triage={triage} />
      <ReproduceDialog
        choices={sides(comparison, triage)}
        opened={triage.address.dialog === "reproduce"}
        onClose={() => update({ dialog: null })}
      />
      <SourceDialog
        sides={stacks(triage)}
        opened={triage.address.dialog === "source"}
        onClose={() => update({ dialog: null })}
      />
      <PolicyDialog comparison={comparison} triage={triage} />
      <PlanDialog comparison={comparison} triage={triage} />
      <Palette
        scope={["comparisons", "data", comparison.id, triage.unit]}
        find={async (query, limit) =>
          triage.unit === null
            ? []
            : (await fetchNodes(comparison.id, triage.unit, { filter: NO_FILTER, query, sort: "order" }, null, limit))
                .items
        }
        onNode={triage.select}
      />
      <HelpOverlay opened={help} onClose={() => setHelp(false)} />
    </div>
  );
}

/** Both runs' call stacks of the selected call. */
function stacks({ node }: TriageData): SourceOf[] {
  if (node === undefined) return [];
  const only = onlySide(node);
  return [
    ...(only === "golden" ? [] : [{ side: "target" as const, frames: node.target_stack }]),
    ...(only === "target" ? [] : [{ side: "golden" as const, frames: node.golden_stack }]),
  ];
}

/** Both runs' forms of the selected call. */
function sides(comparison: Comparison, triage: TriageData): ScriptOf[] {
  const { node, unit } = triage;
  if (node === undefined || unit === null) return [];
  const only = onlySide(node);
  const golden = node.golden_name ?? node.name;
  const of = { unit, comparison: comparison.id };
  return [
    ...(only === "golden" ? [] : [{ side: "target" as const, dump: comparison.target, name: node.name, ...of }]),
    ...(only === "target" ? [] : [{ side: "golden" as const, dump: comparison.golden, name: golden, ...of }]),
  ];
}
