import { useTranslation } from "react-i18next";
import type { OverflowFinding } from "../../api/types";
import { type ClassWord, GLYPHS } from "../../base/verdicts";
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
