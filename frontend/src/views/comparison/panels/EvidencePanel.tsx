import { ActionIcon, Tooltip } from "@mantine/core";
import { type CSSProperties, type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../../../api/client";
import type { NodeDetail } from "../../../api/types";
import { NO_FILTER } from "../../../base/address/address";
import { onlySide } from "../../../base/comparison/unmatched";
import { IN_FILE } from "../../../base/inFile";
import { apiName, turnLabel } from "../../../base/text/callNames";
import { useTranslation } from "../../../texts/useTranslation";
import { CopyButton } from "../../../widgets/basic/CopyButton";
import { Icon } from "../../../widgets/basic/Icon";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Splitter, useSplit } from "../../../widgets/basic/Splitter";
import { Boundary, Empty, Failure, isNotInFile, Loading } from "../../../widgets/basic/States";
import { followHeight } from "../../../widgets/basic/sizes";
import { type PanelCommand, useKeys } from "../../../widgets/basic/useKeys";
import { RuleTerm, Term } from "../../../widgets/late/Term";
import { ClassMark, MatchChip, UnmatchedChip, VerdictMark } from "../../../widgets/marks/Mark";
import { StandingMark } from "../../../widgets/marks/StandingMark";
import { MatchActions } from "../dialogs/MatchActions";
import { useSelectionNow } from "../selection/Following";
import { useResult } from "../selection/result";
import { useSelectedCall, useSelection } from "../selection/SelectionProvider";
import classes from "./EvidencePanel.module.css";
import { TicketButton, useParagraph, wordOf } from "./Explanation";
import { NoteBox } from "./NoteBox";
import { PlotAhead, PlotPanel } from "./PlotPanel";
import { SECTIONS } from "./sections";

/** Why the selected call is judged as it is: sentence, numbers, pictures, code. */
export function EvidencePanel() {
  const { t } = useTranslation();
  const { address, unit, selected } = useSelection();
  const { node, nodeProblem } = useSelectedCall();
  const dock = useSplit("plot", Math.round(Math.min(420, Math.max(196, window.innerHeight * 0.245))), 150, 900);
  if (!selected) return <Empty>{t("evidence.none")}</Empty>;
  return (
    <Column>
      <SectionKeys />
      <div className={classes.scroll}>
        <Heading node={node} />
        {unit && (
          <p className={`${classes.place} dim`}>
            {t("unit.step")} {unit.step} · {t("unit.rank")} {unit.rank}
          </p>
        )}
        {nodeProblem && !node ? <Missing problem={nodeProblem} /> : node ? <Reason node={node} /> : <Loading />}
        {node &&
          SECTIONS.map(({ id, Section, fresh }) => (
            <Boundary key={fresh ? `${id} ${node.address}` : id} title={t("app.crashed")} resetKey={selected}>
              <Section node={node} />
            </Boundary>
          ))}
      </div>
      {!node && !nodeProblem && <PlotAhead />}
      {node && (
        <Docked>
          <Splitter split={dock} label={t("comparison.splitterHeight")} reversed lying />
          <section
            id="section-plots"
            className={classes.dock}
            style={{ "--dock-height": `${dock.size}px` } as CSSProperties}
            tabIndex={-1}
            aria-label={t("evidence.plots")}
          >
            <Boundary title={t("evidence.plotFailed")} resetKey={`${selected}/${address.tab}`}>
              <PlotPanel />
            </Boundary>
          </section>
        </Docked>
      )}
    </Column>
  );
}

/** The plot is here or on the stage, never in both. */
function Docked({ children }: { children: ReactNode }) {
  return useSelectionNow().address.stage !== "plot" && children;
}

/** The name follows each key; what is below it is of the call that is read. */
function Name({ node }: { node: NodeDetail | undefined }) {
  const { selected } = useSelectionNow();
  return (
    <>
      {node && node.address === selected && <ClassMark name={node.name} cls={node.cls} verdict={node.verdict} />}
      <h2 data-testid="selected-name">{selected !== null && <MiddleName name={selected} tail={30} />}</h2>
    </>
  );
}

function Heading({ node }: { node: NodeDetail | undefined }) {
  const { t } = useTranslation();
  const { update, selected } = useSelection();
  return (
    <div className={classes.name}>
      <Name node={node} />
      <CopyButton text={selected ?? ""} label={t("evidence.copyName")} />
      {!IN_FILE && (
        <Tooltip label={`${t("notes.title")} (v)`}>
          <ActionIcon
            size="sm"
            aria-label={t("notes.title")}
            onClick={() => update({ dialog: "note" })}
            data-testid="say-note"
          >
            <Icon name="pencil" size={12} />
          </ActionIcon>
        </Tooltip>
      )}
      <PathButton />
      {!IN_FILE && (
        <Tooltip label={`${t("reproduce.title")} (r)`}>
          <ActionIcon
            size="sm"
            aria-label={t("reproduce.title")}
            onClick={() => update({ dialog: "reproduce" })}
            data-testid="reproduce"
          >
            <Icon name="play" size={12} />
          </ActionIcon>
        </Tooltip>
      )}
    </div>
  );
}

function PathButton() {
  const { t } = useTranslation();
  const { update } = useSelection();
  const { stage } = useSelectionNow().address;
  return (
    <Tooltip label={`${t("path.open")} (w)`}>
      <ActionIcon
        size="sm"
        aria-label={t("path.open")}
        aria-pressed={stage === "path"}
        onClick={() => update({ stage: stage === "path" ? null : "path" })}
        data-testid="open-path"
      >
        <Icon name="path" size={12} />
      </ActionIcon>
    </Tooltip>
  );
}

/** Milliseconds after which what is of another call fades. */
const LONG = 250;

/** Fades while the call on the screen is not the selected one any more, and that takes long. */
function Column({ children }: { children: ReactNode }) {
  const [now, shown] = [useSelectionNow(), useSelection()];
  const behind = now.selected !== shown.selected || now.unit !== shown.unit;
  const [faded, setFaded] = useState(false);
  // By a timer: a transition of the style sheet begins with each key, and makes a layer of each section.
  useEffect(() => {
    if (!behind) return;
    const timer = setTimeout(() => setFaded(true), LONG);
    return () => {
      clearTimeout(timer);
      setFaded(false);
    };
  }, [behind]);
  return (
    <div
      ref={followHeight}
      className={classes.panel}
      aria-busy={behind}
      data-faded={faded || undefined}
      data-testid="evidence"
    >
      {children}
    </div>
  );
}

/** The keys of sections; a component of its own, so that they stay bound while another call is read. */
function SectionKeys() {
  useKeys({}, KEYED);
  return null;
}

const KEYED = SECTIONS.flatMap(({ id, key, help }): PanelCommand[] =>
  key === undefined ? [] : [{ id, key, ...(help && { help }), run: () => showSection(id) }],
);

function showSection(id: string): void {
  const section = document.getElementById(`section-${id}`);
  section?.scrollIntoView({ block: "start" });
  section?.focus({ preventScroll: true });
}

/** A node that this step or rank does not have is no failure: the selection is kept while ranks are walked through. */
function Missing({ problem }: { problem: Error }) {
  const { t } = useTranslation();
  if (problem instanceof ApiError && problem.status === 404 && !isNotInFile(problem))
    return <Empty>{t("evidence.notHere")}</Empty>;
  return <Failure problem={problem} />;
}

function Reason({ node }: { node: NodeDetail }) {
  const { t } = useTranslation();
  const api = node.api || apiName(node.name);
  const { summary } = useResult();
  const { update, select } = useSelection();
  const only = onlySide(node);
  const paragraph = useParagraph(node);
  const { repeats } = node.explanation.facts;
  return (
    <header className={classes.why}>
      <div className={classes.facts}>
        <strong>{t(`classes.${wordOf(node)}`)}</strong>
        {repeats && (
          <button
            type="button"
            className={`plain ${classes.link}`}
            onClick={() => update({ step: repeats.step, rank: repeats.rank, node: repeats.node })}
            data-testid="repeats"
          >
            {t("evidence.repeats", { step: repeats.step })}
          </button>
        )}
        <span>
          <Term word="reached">{t("list.reached")}</Term>: <VerdictMark verdict={node.verdict} />
        </span>
        {only === null ? (
          <MatchChip match={node.match} confidence={node.confidence} />
        ) : (
          <UnmatchedChip cause={node.leftover} side={only} />
        )}
        {node.golden_name && node.golden_name !== node.name && (
          <span className="mono dim">{t("evidence.partner", { name: node.golden_name })}</span>
        )}
        {node.rule && (
          <span className="dim">
            <RuleTerm rule={node.rule}>{t("evidence.rule", { rule: node.rule })}</RuleTerm>
          </span>
        )}
        <TicketButton node={node} paragraph={paragraph} />
        {!IN_FILE && only === null && <MatchActions node={node} />}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long paragraph scrolls, which must be possible by keyboard too */}
      <p className={`${classes.reason} ${classes.paragraph}`} tabIndex={0} data-testid="why">
        {paragraph}
      </p>
      <NoteBox node={node} />
      {summary?.reference != null && !node.rule?.startsWith("R-") && (
        <p className={classes.reason} data-testid="node-standing">
          <span className="dim">{t("reference.title")}:</span> <StandingMark standing={node.standing} words />
        </p>
      )}
      <div className={classes.foot}>
        <nav className={classes.links} aria-label={t("evidence.parents")} data-screen>
          {node.path.map((name) => (
            <button
              key={name}
              type="button"
              className={`plain ${classes.link}`}
              title={name}
              onClick={() => select(name)}
            >
              {shortModule(name)}
            </button>
          ))}
          {node.siblings.map((name) => (
            <button
              key={name}
              type="button"
              className={`plain ${classes.link} ${classes.sibling}`}
              title={`${t("evidence.siblings")}: ${name}`}
              onClick={() => select(name)}
            >
              ↔ {turnLabel(name)}
            </button>
          ))}
          {node.beside !== null && (
            <button
              type="button"
              className={`plain ${classes.link} ${classes.sibling}`}
              title={`${t("evidence.beside")}: ${node.beside}`}
              onClick={() => node.beside !== null && select(node.beside)}
              data-testid="beside"
            >
              ⇢ {node.beside}
            </button>
          )}
          {node.kind === "api" && (
            <button
              type="button"
              className={`plain ${classes.link} ${classes.sibling}`}
              onClick={() => update({ filter: { ...NO_FILTER, api } })}
              data-testid="filter-api"
            >
              {t("evidence.filterApi", { api })}
            </button>
          )}
        </nav>
        {!IN_FILE && only !== null && <MatchActions node={node} />}
      </div>
    </header>
  );
}

/** `Module.layers.1.attn.Attn.forward.0` -> `layers.1.attn`. */
function shortModule(name: string): string {
  const parts = name.split(".");
  return parts[0] === "Module" && parts.length > 4 ? parts.slice(1, -3).join(".") : name;
}
