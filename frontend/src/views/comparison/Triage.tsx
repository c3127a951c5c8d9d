import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { fetchByName, useStrip } from "../../api/comparison/nodes";
import { useReach } from "../../api/comparison/suspects";
import { fetchPlotly } from "../../api/plotly";
import type { Comparison } from "../../api/types";
import { KEY_HELP } from "../../base/address/keys";
import { MARKS } from "../../base/comparison/verdicts";
import { IN_FILE } from "../../base/inFile";
import { formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import { Splitter, useSplit } from "../../widgets/basic/Splitter";
import { Boundary, Failure } from "../../widgets/basic/States";
import { useWidth } from "../../widgets/basic/sizes";
import { useKeys } from "../../widgets/basic/useKeys";
import { lazyPart, useIdlePreload } from "../../widgets/late/lazyPart";
import { painted, usePainted } from "../../widgets/late/painted";
import { OrderStrip } from "../../widgets/lists/OrderStrip";
import { WordMark } from "../../widgets/marks/Mark";
import { Header } from "../../widgets/page/Header";
import { Notice } from "../../widgets/page/Notice";
import { HelpOverlay, PaletteDialog } from "../../widgets/page/overlays";
import { Palette } from "../../widgets/page/Palette";
import { Banner } from "./banner/Banner";
import { DialogSet, Dialogs } from "./dialogs/Dialogs";
import { WaitingMatches } from "./dialogs/WaitingMatches";
import { FileNote } from "./FileNote";
import type { Panel } from "./PanelSwitch";
import { Mode, Sides } from "./Sides";
import { Following, FollowingProvider, useSelectionNow } from "./selection/Following";
import { NoticeProvider, useNotice } from "./selection/notice";
import { callsOf, OriginsProvider, useOriginWalk, useSuspects } from "./selection/OriginsProvider";
import { ComparisonContext, ResultProvider, useResult, useShownComparison } from "./selection/result";
import { SelectionProvider, useSelectedCall, useSelection } from "./selection/SelectionProvider";
import { useSelectByOrder } from "./selection/useCallWalk";
import { useNextAhead } from "./selection/useNextAhead";
import { Stage } from "./stage/Stage";
import classes from "./Triage.module.css";
import { useTriageKeys } from "./useTriageKeys";

const below = () => import("./belowStrip");
const TreePanel = lazyPart(async () => (await below()).TreePanel, { late: true });
const ListPanel = lazyPart(async () => (await below()).ListPanel, { late: true });
const EvidencePanel = lazyPart(async () => (await below()).EvidencePanel, { late: true });
const PanelSwitch = lazyPart(async () => (await below()).PanelSwitch, { late: true });
const Controls = lazyPart(async () => (await import("./Controls")).Controls, { late: true });
/** Keys of what only a server does. */
const OF_SERVER = ["keys.export", "keys.copy"];
const AT_REST = [DialogSet, HelpOverlay, PaletteDialog];

/** Part of the window's width, within bounds. */
function share(part: number, least: number, most: number): number {
  return Math.round(Math.min(most, Math.max(least, window.innerWidth * part)));
}

/** Banner, call-order strip, tree, list and evidence: one selection, nothing to click before the answer is there. */
export function Triage({ comparison }: { comparison: Comparison }) {
  return (
    <ComparisonContext value={comparison}>
      <NoticeProvider>
        <ResultProvider>
          <SelectionProvider>
            <OriginsProvider>
              <FollowingProvider>
                <Screen />
              </FollowingProvider>
            </OriginsProvider>
          </SelectionProvider>
        </ResultProvider>
      </NoticeProvider>
    </ComparisonContext>
  );
}

/** Reads nothing that changes with a click, so a click redraws only the panels that show the change. */
const Screen = memo(function Screen() {
  const { t } = useTranslation();
  const [help, setHelp] = useState(false);
  const [panel, setPanel] = useState<Panel>("list");
  const left = useSplit("tree", share(0.19, 244, 340), 160, 620);
  const right = useSplit("evidence", share(0.36, 460, 760), 320, 1100);
  useKeys({ help: () => setHelp(true) });
  const marks = [...MARKS, "repeats" as const].map((word) => ({
    id: word,
    mark: <WordMark word={word} words />,
    text: t(`classHelp.${word}`),
  }));
  return (
    <div className={classes.screen}>
      <Header>
        <Heading />
        <Following>
          <Controls onHelp={() => setHelp(true)} fallback={<span className={classes.controls} />} />
        </Following>
      </Header>
      <Main>
        <SummaryProblem />
        <Following around>
          <Banner />
        </Following>
        <Following around>
          {IN_FILE ? <FileNote /> : <WaitingMatches />}
          <Strip />
        </Following>
        <div className={classes.switch}>
          <PanelSwitch panel={panel} onPanel={setPanel} />
        </div>
        <div
          className={classes.panels}
          data-panel={panel}
          style={{ gridTemplateColumns: `${left.size}px 8px minmax(280px, 1fr) 8px minmax(320px, ${right.size}px)` }}
        >
          <Following>
            <Stage />
          </Following>
          <PanelBox name="tree">
            <TreePanel />
          </PanelBox>
          <Splitter split={left} label={t("comparison.splitter", { panel: t("comparison.panels.tree") })} />
          <PanelBox name="list">
            <ListPanel />
          </PanelBox>
          <Splitter
            split={right}
            reversed
            label={t("comparison.splitter", { panel: t("comparison.panels.evidence") })}
          />
          <PanelBox name="evidence">
            <EvidencePanel />
          </PanelBox>
        </div>
      </Main>
      <ShownNotice />
      <Dialogs />
      <CallPalette />
      <TriageKeys />
      <Rest />
      <HelpOverlay
        opened={help}
        onClose={() => setHelp(false)}
        keys={IN_FILE ? KEY_HELP.filter(([, text]) => !OF_SERVER.includes(text)) : KEY_HELP}
        marks={marks}
        terms
      />
    </div>
  );
});

/** Says for the style sheet what covers tree and list: a rule with `:has()` would have every key look at each element. */
function Main({ children }: { children: ReactNode }) {
  const { address, selected } = useSelectionNow();
  return (
    <main
      id="main"
      className={classes.main}
      tabIndex={-1}
      data-staged={(address.stage !== null && selected !== null) || undefined}
    >
      {children}
    </main>
  );
}

function Heading() {
  const comparison = useShownComparison();
  return (
    <>
      <Sides comparison={comparison} />
      <Mode comparison={comparison} />
    </>
  );
}

/** The answer is what the screen is opened for; what else can be opened on it comes at rest. */
function Rest() {
  const { summary, summaryProblem } = useResult();
  const answered = summary !== undefined || summaryProblem !== null;
  usePainted(answered);
  useIdlePreload(AT_REST, answered);
  useEffect(() => {
    if (answered) void painted.then(fetchPlotly);
  }, [answered]);
  return null;
}

function PanelBox({ name, children }: { name: Panel; children: ReactNode }) {
  const { t } = useTranslation();
  const { selected } = useSelection();
  const follows = name !== "list";
  return (
    <section className={`panel ${classes.panel}`} data-name={name} aria-label={t(`comparison.panels.${name}`)}>
      <Boundary title={t("app.crashed")} resetKey={name === "evidence" ? (selected ?? "") : ""}>
        {follows ? <Following around={name === "tree"}>{children}</Following> : children}
      </Boundary>
    </section>
  );
}

function SummaryProblem() {
  const { summaryProblem } = useResult();
  return summaryProblem && <Failure problem={summaryProblem} />;
}

/** The run in call order, as one strip. */
function Strip() {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { address, update, unit } = useSelection();
  const { node } = useSelectedCall();
  const selectByOrder = useSelectByOrder();
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const strip = useStrip(id, unit, Math.max(0, width));
  const { suspects, shown, point } = useSuspects();
  const { showSuspect } = useOriginWalk();
  const reach = useReach(id, unit, shown, { buckets: Math.max(0, width) }).data;
  const marks = callsOf(suspects)
    .filter((one) => one.step === unit?.step && one.rank === unit?.rank)
    .map((one) => ({
      number: one.number,
      order: one.order ?? 0,
      label: t("suspects.mark", { number: one.number, kind: t(`suspects.kinds.${one.kind}`), name: one.node ?? "" }),
      current: one.address === (node?.address ?? null),
      onPick: () => showSuspect(one),
      onPoint: (on: boolean) => point(on ? one.address : null),
    }));
  return (
    <section className={`panel ${classes.strip}`} aria-label={t("comparison.strip")}>
      <OrderStrip
        box={box}
        width={width}
        strip={strip.data}
        selected={node?.order ?? null}
        range={address.filter.range}
        marks={marks}
        tint={reach?.runs}
        tintWords={
          reach?.count
            ? t("suspects.inherited", { count: reach.count, total: formatCount(reach.count), name: reach.node })
            : undefined
        }
        onPick={(bucket) => void selectByOrder(bucket.seq)}
        onRange={(range) => update({ filter: { ...address.filter, range } })}
      />
    </section>
  );
}

function ShownNotice() {
  return <Notice words={useNotice()} />;
}

function CallPalette() {
  const { id } = useShownComparison();
  const { unit, select } = useSelection();
  return useMemo(
    () => (
      <Palette
        scope={["comparisons", "data", id, unit]}
        find={async (text, limit) => (unit === null ? [] : fetchByName(id, unit, text, limit))}
        onNode={select}
      />
    ),
    [id, unit, select],
  );
}

/** A component of its own, so a change in what the keys need redraws nothing else. */
function TriageKeys() {
  useTriageKeys();
  useNextAhead();
  return null;
}
