import { useTranslation } from "react-i18next";
import { asClass, GLYPHS, verdictClass, verdictLabel } from "../base/verdicts";
import classes from "./Mark.module.css";

/** The glyph of a class: shape and hue say the same thing, the accessible name says it in words. */
export function ClassMark({ cls, words = false }: { cls: string | null | undefined; words?: boolean }) {
  const { t } = useTranslation();
  const word = asClass(cls);
  const label = t(`classes.${word}`);
  return (
    <span className={classes.mark} data-cls={word} title={`${label}: ${t(`classHelp.${word}`)}`}>
      <span className={classes.glyph} aria-hidden="true">
        {GLYPHS[word]}
      </span>
      {words ? <span>{label}</span> : <span className="sr">{label}</span>}
    </span>
  );
}

/** "Accuracy Reached or Not" in the field's own words. */
export function VerdictMark({ verdict }: { verdict: string | null | undefined }) {
  return (
    <span className={classes.verdict} data-cls={verdictClass(verdict)} data-verdict={verdict ?? "n/a"}>
      {verdictLabel(verdict)}
    </span>
  );
}

export function MatchChip({ match }: { match: string }) {
  const { t, i18n } = useTranslation();
  const known = i18n.exists(`match.${match}`);
  const word = (known ? match : "none") as "exact";
  return (
    <span className={classes.chip} data-match={match} title={known ? t(`matchHelp.${word}`) : match}>
      {known ? t(`match.${word}`) : match}
    </span>
  );
}
