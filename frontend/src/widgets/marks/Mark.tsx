import { createContext, useContext } from "react";
import type { NodeNote } from "../../api/types";
import type { Side } from "../../base/comparison/sides";
import { isUnmatchedCause } from "../../base/comparison/unmatched";
import { type MarkWord, markGlyph, markWord, verdictClass, verdictLabel } from "../../base/comparison/verdicts";
import { isText } from "../../texts/translation";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";
import classes from "./Mark.module.css";

/** Whether the call of this name is wrong again as in an earlier step, in what the screen shows. */
export const RepeatsContext = createContext<(name: string) => boolean>(() => false);

interface ClassMarkProps {
  /** Of the call, where it is one of the step and rank on the screen. */
  name?: string;
  cls: string | null | undefined;
  /** The verdict next to it. */
  verdict?: string | null;
  words?: boolean;
  /** What is around it explains it. */
  plain?: boolean;
}

/** The glyph of a class, told by shape and by colour; its accessible name has the word. */
export function ClassMark({ name, cls, verdict, words = false, plain = false }: ClassMarkProps) {
  const repeats = useContext(RepeatsContext);
  const word = name !== undefined && repeats(name) ? "repeats" : markWord(cls, verdict);
  return <WordMark word={word} words={words} plain={plain} />;
}

export function WordMark({ word, words, plain = false }: { word: MarkWord; words: boolean; plain?: boolean }) {
  const { t } = useTranslation();
  const label = t(`classes.${word}`);
  return (
    <span className={classes.mark} data-cls={word} title={plain ? undefined : `${label}: ${t(`classHelp.${word}`)}`}>
      <span className={classes.glyph} aria-hidden="true">
        {markGlyph(word)}
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

/** To two places, as far as a confidence means anything. */
function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}

interface MatchChipProps {
  match: string;
  confidence: number | null;
  /** Without the word: a tree has little room. */
  brief?: boolean;
}

/** How a pair was found, and how sure that is. */
export function MatchChip({ match, confidence, brief = false }: MatchChipProps) {
  const { t } = useTranslation();
  const known = isText(`match.${match}`);
  const word = (known ? match : "none") as "exact";
  const name = known ? t(`match.${word}`) : match;
  const sure =
    confidence === null || match === "none" ? null : t("match.confidence", { confidence: hundredths(confidence) });
  const hint = known ? t(`matchHelp.${word}`) : match;
  return (
    <span
      className={classes.chip}
      data-match={match}
      title={[brief && name, hint, sure].filter(Boolean).join(" · ")}
      data-testid="match"
    >
      {brief ? <span className="sr">{name} </span> : name}
      {sure !== null && confidence !== null && confidence < 1 && <span className="num"> {hundredths(confidence)}</span>}
    </span>
  );
}

/** The status of a note on a call; its text is the tooltip. */
export function NoteChip({ standing, text = "" }: { standing: NodeNote["standing"]; text?: string }) {
  const { t } = useTranslation();
  return (
    <span
      className={classes.chip}
      data-note={standing}
      title={[t(`notes.help.${standing}`), text].filter(Boolean).join("\n")}
      data-testid="note-chip"
    >
      <Icon name="pencil" size={10} /> {t(`notes.standings.${standing}`)}
    </span>
  );
}

/** Why a call has no partner; `side` is the only one that makes it. Brief where a name needs the room. */
export function UnmatchedChip({ cause, side, brief = false }: { cause: string | null; side: Side; brief?: boolean }) {
  const { t } = useTranslation();
  const only = t(side === "golden" ? "list.onlyGolden" : "list.onlyTarget");
  const word = isUnmatchedCause(cause) ? t(`leftovers.${cause}`) : null;
  const who = brief && word !== null ? t(`comparison.${side}`) : only;
  return (
    <span
      className={classes.chip}
      data-match="none"
      data-leftover={cause ?? undefined}
      title={[only, isUnmatchedCause(cause) && t(`leftoverHelp.${cause}`)].filter(Boolean).join(": ")}
      data-testid="leftover"
    >
      {[who, word].filter(Boolean).join(" · ")}
    </span>
  );
}
