import type { Watch } from "../../api/types";
import { useStopWatch } from "../../api/watches";
import { formatSince } from "../../base/numbers/dates";
import { formatCount, formatRuns } from "../../base/numbers/format";
import { say } from "../../texts/serverTexts";
import type { Translate } from "../../texts/translation";
import { useTranslation } from "../../texts/useTranslation";
import { Link } from "../basic/navigation";
import classes from "./Watch.module.css";

const GLYPHS: Record<Watch["condition"], string> = {
  waiting: "…",
  looking: "…",
  growing: "↻",
  still: "◦",
  ended: "✓",
  gone: "⚠",
  outside: "⚠",
  unreadable: "⚠",
};

/** What a watch sees in words: how the run goes on, what is new, what it is compared with; and the end of the watch. */
export function WatchLine({ watch, name }: { watch: Watch; name: string }) {
  const { t, language } = useTranslation();
  const stop = useStopWatch();
  const { condition, new_steps: steps, new_ranks: ranks } = watch;
  const to = `dumps/${encodeURIComponent(watch.dump)}`;
  return (
    <div className={classes.line} data-testid="watch" data-condition={condition}>
      <span className={classes.state} data-condition={condition} aria-live="polite">
        <span aria-hidden="true">{GLYPHS[condition]}</span> {conditionWords(t, watch, language)}
      </span>
      {steps.length > 0 && (
        <Link
          to={to}
          search={`s=${steps[0]}`}
          className={classes.new}
          title={t("watch.newHint", { numbers: formatRuns(steps) })}
          data-testid="new-steps"
        >
          {t("watch.newSteps", { count: steps.length, total: formatCount(steps.length) })}
        </Link>
      )}
      {ranks.length > 0 && steps.length === 0 && (
        <Link
          to={to}
          search={`r=${ranks[0]}`}
          className={classes.new}
          title={t("watch.newHint", { numbers: formatRuns(ranks) })}
        >
          {t("watch.newRanks", { count: ranks.length, total: formatCount(ranks.length) })}
        </Link>
      )}
      <Pair watch={watch} />
      <button
        type="button"
        className={`plain ${classes.stop}`}
        aria-label={t("watch.stopOf", { name })}
        disabled={stop.isPending}
        onClick={() => stop.mutate(watch.id)}
        data-testid="stop-watch"
      >
        {t("watch.stop")}
      </button>
    </div>
  );
}

function Pair({ watch }: { watch: Watch }) {
  const { t } = useTranslation();
  if (watch.partner_name === null) return null;
  if (watch.comparison === null)
    return <span className="dim">{t("watch.willPair", { name: watch.partner_name })}</span>;
  return (
    <Link to={`comparisons/${encodeURIComponent(watch.comparison)}`} data-testid="watch-pair">
      {t("watch.paired", { name: watch.partner_name })}
    </Link>
  );
}

function conditionWords(t: Translate, watch: Watch, language: string): string {
  const { condition, step, calls, why, why_said: said } = watch;
  const since = formatSince(watch.since, language);
  if (condition === "growing" && calls !== null)
    return t("watch.growingCalls", { step: step ?? 0, count: calls, calls: formatCount(calls) });
  return t(`watch.${condition}`, { step: step ?? 0, since, why: why === null ? "" : say(why, said) });
}
