import type { FailingCalls } from "../../api/comparison/prechecks";
import type { JudgedAlone, NodeAlone } from "../../api/types";
import type { Side } from "../../base/comparison/sides";
import { exactReal, formatReal } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./PrecheckMark.module.css";

/** How a call does alone, in a word. */
export function PrecheckMark({ word }: { word: NodeAlone["word"] }) {
  const { t } = useTranslation();
  return (
    <strong className={classes.word} data-word={word} data-testid="alone-word">
      {t(`alone.words.${word}`)}
    </strong>
  );
}

/** Next to a name: this call fails alone; the tooltip names the sides, of a dump alone none. */
export function PrecheckChip({ sides = [], brief = false }: { sides?: readonly Side[]; brief?: boolean }) {
  const { t } = useTranslation();
  const of = sides.map((side) => t(`comparison.${side}`)).join(", ");
  const label = t("alone.chip");
  const hint = of ? t("alone.chipHint", { sides: of }) : t("alone.chipHintHere");
  return (
    <span className={classes.chip} title={hint} data-testid="alone-chip">
      <span aria-hidden="true">⊗</span>
      {brief ? <span className="sr"> {label}</span> : ` ${label}`}
    </span>
  );
}

/** The mark of a call in a list or tree, nothing where it does not fail. */
export function FailingMark({ failing, name, brief }: { failing?: FailingCalls; name: string; brief?: boolean }) {
  const sides = failing?.get(name);
  return sides ? <PrecheckChip sides={sides} brief={brief} /> : null;
}

/** The result of a call run alone, with its numbers; in a comparison with its side. */
export function PrecheckLine({ side, told }: { side?: Side; told: NodeAlone }) {
  const { t } = useTranslation();
  return (
    <p className={classes.line} data-testid={`alone-${side ?? "result"}`}>
      {side && <span className="dim">{t(`comparison.${side}`)}</span>} <PrecheckMark word={told.word} />
      {(told.here || told.recorded) && (
        <span className="dim">{t(told.made_up ? "alone.madeUp" : "alone.inputsRecorded")}</span>
      )}
      {told.recorded && <Result label={t("alone.recorded")} found={told.recorded} />}
      {told.here && <Result label={t("alone.here", { device: told.device })} found={told.here} />}
      {told.after_forward && told.word === "fail" && <span>{t("alone.afterForward")}</span>}
      {told.reason !== "" && <span lang="en">{told.reason}</span>}
    </p>
  );
}

function Result({ label, found }: { label: string; found: JudgedAlone }) {
  const { t } = useTranslation();
  const word = found.verdict === "error" ? "fail" : found.verdict === "SKIP" ? "skip" : found.verdict;
  const exact = [found.item, exactReal(found.units), exactReal(found.cosine), exactReal(found.max_abs)].join(" · ");
  return (
    <span className={classes.result} title={`${exact}\n${found.reason}`}>
      {label}: <span data-word={word}>{t(`alone.words.${word as "pass"}`)}</span>
      {found.units !== null && (
        <span className="num dim">
          {" "}
          (
          {t("alone.numbers", {
            units: formatReal(found.units, 3),
            cosine: formatReal(found.cosine, 6),
            max: formatReal(found.max_abs, 3),
          })}
          )
        </span>
      )}
    </span>
  );
}
