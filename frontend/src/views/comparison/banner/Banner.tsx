import { ActionIcon } from "@mantine/core";
import type { Origin, Summary } from "../../../api/types";
import { NO_FILTER } from "../../../base/address/address";
import { callSite, framePlace } from "../../../base/comparison/stackFrames";
import { CAUSES_WITHOUT_PARTNER } from "../../../base/comparison/unmatched";
import { CLASSES, type ClassWord, GLYPHS } from "../../../base/comparison/verdicts";
import { IN_FILE } from "../../../base/inFile";
import { formatCount, formatRuns } from "../../../base/numbers/format";
import { say } from "../../../texts/serverTexts";
import { isText } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Notes, ProblemList } from "../../../widgets/basic/Problems";
import { Loading } from "../../../widgets/basic/States";
import { Hint } from "../../../widgets/late/Hint";
import { lazyPart } from "../../../widgets/late/lazyPart";
import { Term } from "../../../widgets/late/Term";
import { ClassMark, NoteChip } from "../../../widgets/marks/Mark";
import { useOriginWalk } from "../selection/OriginsProvider";
import { useResult, useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Banner.module.css";
import { DifferingInputs, LargestError, Warnings } from "./BannerNotes";
import { NotFullyJudged, NotJudgedToo } from "./Coverage";
import { OriginPrecheck } from "./OriginPrecheck";
import { Suspects } from "./Suspects";

// What only some results have, and what opens from the banner.
const GoldenOff = lazyPart(async () => (await import("./GoldenOff")).GoldenOff);
const CoverageNotes = lazyPart(async () => (await import("./CoverageNotes")).CoverageNotes, { late: true });
const PlanNotes = lazyPart(async () => (await import("../plan/PlanNotes")).PlanNotes, { late: true });
const UnitMatrix = lazyPart(async () => (await import("./UnitMatrix")).UnitMatrix, { late: true });
const OlderResult = lazyPart(async () => (await import("../Again")).OlderResult);

const Provisional = lazyPart(async () => (await import("./Provisional")).Provisional, { late: true });

/** The answer in words: what went wrong first, why, how sure, and what to look at next. */
export function Banner() {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { summary, origins } = useResult();
  const { originIndex } = useOriginWalk();
  const { update, assistFirst } = useSelection();
  if (!summary) {
    return (
      <section className={`panel ${classes.banner}`} aria-label={t("comparison.firstOrigin")}>
        <Loading />
      </section>
    );
  }
  if (assistFirst) {
    return (
      <section className={`panel ${classes.banner}`} data-cls="unknown" aria-label={t("comparison.firstOrigin")}>
        <p className={classes.reason}>{t("assistant.unread")}</p>
      </section>
    );
  }
  const growing = (comparison.growing ?? []).length > 0;
  const origin = origins[originIndex];
  const bad = origin ? "origin" : outcomeClass(summary);
  return (
    <section
      className={`panel ${classes.banner}`}
      data-cls={bad}
      aria-label={t("comparison.firstOrigin")}
      data-testid="banner"
    >
      {origin ? (
        <OriginLines id={comparison.id} origin={origin} summary={summary} />
      ) : (
        <NoOrigin summary={summary} policy={comparison.policy} />
      )}
      <DifferingInputs origins={origins} />
      {!origin && bad !== "unknown" && <LargestError id={comparison.id} />}
      <NotJudgedToo summary={summary} />
      {growing && <Provisional comparison={comparison} />}
      {summary.older && <OlderResult comparison={comparison} />}
      <Warnings summary={summary} growing={growing} />
      {summary.most_unmatched && (
        <p className={classes.reason} data-testid="strangers">
          <strong>{t("comparison.noPartners")}</strong>{" "}
          {!IN_FILE && (
            <button
              type="button"
              className={`plain ${classes.count}`}
              onClick={() => update({ dialog: "assist" })}
              data-testid="open-assistant"
            >
              {t("assistant.title")} (a)
            </button>
          )}
        </p>
      )}
      {summary.reference !== null && <GoldenOff summary={summary} />}
      <ClassCounts id={comparison.id} summary={summary} />
      <Suspects />
    </section>
  );
}

interface OriginProps {
  id: string;
  origin: Origin;
  summary: Summary;
}

function OriginLines({ id, origin, summary }: OriginProps) {
  const { t } = useTranslation();
  const { origins, notes } = useResult();
  const { originIndex, moveOrigin } = useOriginWalk();
  const { showOrigin } = useSelection();
  const note = notes.get(origin.node);
  const place = callSite(origin.frames, origin.called_at);
  // A hidden cause has no known kind: the place where it shows first does not reveal it.
  const word = origin.hidden ? "hidden" : origin.kind;
  const kind = isText(`comparison.kinds.${word}`) ? t(`comparison.kinds.${word as "weight"}`) : word;
  return (
    <>
      <div className={classes.first}>
        <span className={classes.glyph} aria-hidden="true">
          ✖
        </span>
        <h2 className={classes.title}>
          {originIndex === 0
            ? t(origin.hidden ? "comparison.firstVisible" : "comparison.firstOrigin")
            : t("comparison.originOf", { index: originIndex + 1, total: origins.length })}
        </h2>
        <button
          type="button"
          className={`plain ${classes.node}`}
          onClick={() => showOrigin(origin)}
          data-testid="origin"
        >
          <MiddleName name={origin.node} tail={36} />
        </button>
        <span className={classes.kind} data-testid="origin-kind">
          {kind}
        </span>
        {note && <NoteChip standing={note.standing} text={note.text} />}
        {origin.module && (
          <span className="mono" data-testid="origin-module">
            {origin.module}
          </span>
        )}
        {place && (
          <span
            className="mono"
            title={t("comparison.calledAt", { place: origin.called_at })}
            data-testid="origin-place"
          >
            {framePlace(place)}
          </span>
        )}
        <span className="dim">
          <Term word="confidence" more={String(origin.confidence)}>
            {t("comparison.confidence")}
          </Term>
          : <strong>{t(`comparison.confidenceWords.${origin.confidence_word}`)}</strong> (
          {Math.round(100 * origin.confidence)} %)
        </span>
        {origin.explains > 0 && <ExplainedCalls origin={origin} />}
        {summary.units.length > 1 && (
          <span className="dim num" data-testid="origin-unit">
            {t("unit.step")} {origin.step} · {t("unit.rank")}{" "}
            {formatRuns(origin.ranks.length > 1 ? origin.ranks : [origin.rank])}
          </span>
        )}
        {origins.length > 1 && (
          <span className={classes.pager}>
            <Hint label={`${t("comparison.previousOrigin")} (N)`}>
              <ActionIcon size="sm" aria-label={t("comparison.previousOrigin")} onClick={() => moveOrigin(-1)}>
                <Icon name="left" size={12} />
              </ActionIcon>
            </Hint>
            <span className="num dim">
              {originIndex + 1} / {origins.length}
            </span>
            <Hint label={`${t("comparison.nextOrigin")} (n)`}>
              <ActionIcon size="sm" aria-label={t("comparison.nextOrigin")} onClick={() => moveOrigin(1)}>
                <Icon name="right" size={12} />
              </ActionIcon>
            </Hint>
          </span>
        )}
      </div>
      <p className={classes.reason} data-testid="reason">
        {say(origin.evidence, origin.evidence_said)}
        {origin.advice && (
          <span className="dim">
            {" "}
            <strong>{t("comparison.advice")}:</strong> {say(origin.advice, origin.advice_said)}
          </span>
        )}
      </p>
      <OriginPrecheck id={id} origin={origin} />
    </>
  );
}

/** The number of differences that an origin explains, and on demand the path to the first No. */
function ExplainedCalls({ origin }: { origin: Origin }) {
  const { t } = useTranslation();
  const { selected, update } = useSelection();
  const text = t("comparison.explains", { count: origin.explains, total: formatCount(origin.explains) });
  if (origin.path.length < 2) {
    return (
      <span className="dim num" data-testid="origin-explains">
        {text}
      </span>
    );
  }
  return (
    <Notes label={text} warn={false} testId="origin-explains">
      <p className={classes.pathTitle}>{t("comparison.explainsPath")}</p>
      <ol className={classes.path} data-testid="origin-path">
        {origin.path.map((name) => (
          <li key={name}>
            <button
              type="button"
              className={`plain mono ${classes.pathNode}`}
              aria-current={name === selected || undefined}
              onClick={() => update({ step: origin.step, rank: origin.rank, node: name })}
            >
              {name}
            </button>
          </li>
        ))}
      </ol>
    </Notes>
  );
}

/** The class whose glyph and colour show the outcome of a comparison without an origin. */
function outcomeClass({ counts, classes: found, mode, outcome }: Summary): "exact" | "propagated" | "unknown" {
  if (outcome === "not_fully_judged") return "unknown";
  if (counts.no + counts.warning > 0) return "propagated";
  if (counts.yes > 0) return "exact";
  return mode === "structure" && counts.nodes > 0 && !found.structural ? "exact" : "unknown";
}

function NoOrigin({ summary, policy }: { summary: Summary; policy: string }) {
  const { t } = useTranslation();
  const { counts } = summary;
  const cls = outcomeClass(summary);
  const word = policy.split("\n")[0] ?? "";
  const noneMet = summary.nothing_met;
  const judged = counts.yes + counts.warning;
  const open = summary.outcome === "not_fully_judged" && !noneMet && judged > 0;
  return (
    <>
      <div className={classes.first}>
        <span className={classes.glyph} aria-hidden="true">
          {GLYPHS[cls]}
        </span>
        {open ? (
          <NotFullyJudged summary={summary} />
        ) : (
          <h2 className={classes.title} data-testid="no-origin">
            {t("comparison.noOrigin", {
              policy: isText(`comparison.policies.${word}`) ? t(`comparison.policies.${word as "default"}`) : word,
            })}
          </h2>
        )}
        <span className={cls === "unknown" ? undefined : "dim"}>
          {open && t("coverage.agrees")}
          {cls === "unknown" && !open && t(noneMet ? "comparison.noneMet" : "comparison.nothingCompared")}
          {cls === "exact" && counts.yes > 0 && t("comparison.noOriginAll", { total: formatCount(counts.yes) })}
          {cls === "exact" && counts.yes === 0 && t("comparison.structureAlike")}
          {cls === "propagated" &&
            (counts.no > 0
              ? t("comparison.noOriginSome", { no: formatCount(counts.no) })
              : t("comparison.noOriginWarning", { warning: formatCount(counts.warning) }))}{" "}
          {cls === "unknown" && !open && !summary.most_unmatched && counts.items > 0 && (
            <strong>{t(noneMet ? "comparison.noneMetHint" : "comparison.noNumbers")}</strong>
          )}
        </span>
      </div>
      <p className={`${classes.reason} dim`}>
        {t("comparison.coverage", {
          nodes: formatCount(counts.nodes),
          items: formatCount(counts.items),
          yes: formatCount(counts.yes),
          warning: formatCount(counts.warning),
          no: formatCount(counts.no),
          na: formatCount(counts.not_comparable),
          unmatched: formatCount(counts.unmatched_target + counts.unmatched_golden),
          unreadable: formatCount(counts.unreadable),
        })}
      </p>
    </>
  );
}

function ClassCounts({ id, summary }: { id: string; summary: Summary }) {
  const { t } = useTranslation();
  const { steps, ranks } = useResult();
  const { address, update } = useSelection();
  const active = address.filter.classes;
  const toggle = (cls: ClassWord) => {
    const only = active.length === 1 && active[0] === cls;
    update({ filter: only ? { ...address.filter, classes: [] } : { ...NO_FILTER, classes: [cls] } });
  };
  return (
    <div className={classes.numbers}>
      {summary.units.length > 1 && <span className="dim">{t("comparison.ofAllUnits")}</span>}
      {CLASSES.filter((cls) => (summary.classes[cls] ?? 0) > 0).map((cls) => {
        const count = summary.classes[cls] ?? 0;
        return (
          <Hint
            key={cls}
            label={`${t(`classes.${cls}`)}: ${t(`classHelp.${cls}`)}\n${t("comparison.showClass", {
              total: formatCount(count),
              cls: t(`classes.${cls}`),
            })}`}
          >
            <button
              type="button"
              className={`plain ${classes.count}`}
              aria-pressed={active.includes(cls)}
              onClick={() => toggle(cls)}
              data-testid={`count-${cls}`}
            >
              <span className="num">{formatCount(count)}</span> <ClassMark cls={cls} words plain />
            </button>
          </Hint>
        );
      })}
      {summary.units.length > 1 && <UnitMatrix summary={summary} />}
      <Strays summary={summary} />
      {ranks.length > 1 && (
        <button
          type="button"
          className={`plain ${classes.count}`}
          onClick={() => update({ dialog: "ranks" })}
          data-testid="open-rank-map"
        >
          {t("trends.ranksTitle")}
        </button>
      )}
      {steps.length > 1 && (
        <button
          type="button"
          className={`plain ${classes.count}`}
          onClick={() => update({ dialog: "trends" })}
          data-testid="open-trends"
        >
          {t("trends.title")}
        </button>
      )}
      <PlanNotes id={id} summary={summary} />
      <Remarks summary={summary} />
    </div>
  );
}

/** Ranks that differ where the others of their step agree: a click goes to the first call that is No. */
function Strays({ summary }: { summary: Summary }) {
  const { t } = useTranslation();
  const { steps } = useResult();
  const { update } = useSelection();
  return summary.strays.slice(0, 3).map((one) => (
    <button
      key={`${one.step}/${one.rank}`}
      type="button"
      className={`plain ${classes.count}`}
      title={t("ranks.strayWhy", { ...one })}
      onClick={() => update({ step: one.step, rank: one.rank, node: one.node })}
      data-testid="stray"
    >
      {t("ranks.strays", { rank: one.rank })}
      {steps.length > 1 && <span className="dim"> {t("trends.step", { step: one.step })}</span>}
    </button>
  ));
}

/** A step or rank that only one side has: nothing is damaged, so it is no problem among others. */
function isOfOneSide({ kind }: { kind: string }): boolean {
  return kind === "missing_rank" || kind === "unmatched_rank";
}

/** Reasons to doubt the answer: calls without a partner, settings, problems. */
function Remarks({ summary }: { summary: Summary }) {
  const { t } = useTranslation();
  const { update } = useSelection();
  const { counts } = summary;
  const inferred = summary.units.some((unit) => unit.inferred);
  const alone = summary.problems.filter(isOfOneSide);
  const others = summary.problems.filter((problem) => !isOfOneSide(problem));
  const showLeft = () => update({ filter: { ...NO_FILTER, leftovers: CAUSES_WITHOUT_PARTNER } });
  return (
    <div className={classes.remarks}>
      {counts.unmatched_target > 0 && (
        <button type="button" className={`plain ${classes.count}`} onClick={showLeft}>
          {t("comparison.unmatchedTarget", {
            count: counts.unmatched_target,
            total: formatCount(counts.unmatched_target),
          })}
        </button>
      )}
      {counts.unmatched_golden > 0 && (
        <button type="button" className={`plain ${classes.count}`} onClick={showLeft}>
          {t("comparison.unmatchedGolden", {
            count: counts.unmatched_golden,
            total: formatCount(counts.unmatched_golden),
          })}
        </button>
      )}
      <CoverageNotes coverage={summary.coverage} />
      {inferred && (
        <Notes label={t("unit.inferred")} warn={false}>
          {t("unit.inferredHint")}
        </Notes>
      )}
      {summary.settings.length > 0 && (
        <Notes label={t("comparison.settingsCount", { count: summary.settings.length })}>
          <ul className={classes.settings} data-testid="settings">
            {summary.settings.map((text, index) => {
              const said = summary.settings_said[index];
              return <li key={text}>{say(text, said && [said])}</li>;
            })}
          </ul>
        </Notes>
      )}
      {alone.length > 0 && (
        <Notes
          label={t("comparison.aloneCount", { count: alone.length, place: alone[0]?.loc.replace("/", " ") ?? "" })}
          warn={alone.some(({ kind }) => kind === "missing_rank")}
          testId="units-alone"
        >
          <ProblemList problems={alone} />
        </Notes>
      )}
      {others.length > 0 && (
        <Notes label={t("comparison.problemsCount", { count: summary.problem_count - alone.length })}>
          <ProblemList problems={others} total={summary.problem_count - alone.length} />
        </Notes>
      )}
    </div>
  );
}
