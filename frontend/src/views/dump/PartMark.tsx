import type { OverflowBelow, OverflowFinding } from "../../api/types";
import { type ClassWord, GLYPHS } from "../../base/comparison/verdicts";
import { formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./DumpView.module.css";

/** Whose glyph and colour a part has. */
const LOOKS: Record<OverflowFinding["part"], ClassWord> = {
  origin: "nonfinite",
  input: "structural",
  propagated: "propagated",
  contains: "contains",
  absorbed: "benign",
  intended: "benign",
  saturated: "amplifier",
  growth: "amplifier",
};

export const PARTS = Object.keys(LOOKS) as OverflowFinding["part"][];

/** What a row of the tree and those below it did with such numbers: the worst of it, and of how many calls. */
export function BelowMark({ below, leaf }: { below: OverflowBelow; leaf: boolean }) {
  const { t } = useTranslation();
  const cls = LOOKS[below.part];
  const words = t(`dump.overflow.parts.${below.part}`);
  const title = leaf ? words : t("dump.overflow.below", { part: words, total: formatCount(below.calls) });
  return (
    <span className={classes.below} style={{ color: `var(--${cls})` }} title={title} data-part={below.part}>
      <span aria-hidden="true">{GLYPHS[cls]}</span>
      {!leaf && <span className="num">{formatCount(below.calls)}</span>}
      <span className="sr">{title}</span>
    </span>
  );
}

/** What a call did with a number that is not finite, in glyph, colour and word. */
export function PartMark({ part }: { part: OverflowFinding["part"] }) {
  const { t } = useTranslation();
  const cls = LOOKS[part];
  return (
    <span className={classes.part} style={{ color: `var(--${cls})` }} data-part={part}>
      <span aria-hidden="true">{GLYPHS[cls]}</span> {t(`dump.overflow.parts.${part}`)}
    </span>
  );
}
