import { useState } from "react";
import { useCallPrecheck, useUnitPrecheck } from "../../../api/comparison/prechecks";
import type { Comparison } from "../../../api/types";
import { SIDES, type Side } from "../../../base/comparison/sides";
import { IN_FILE } from "../../../base/inFile";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import { Term } from "../../../widgets/late/Term";
import { PrecheckLine } from "../../../widgets/marks/PrecheckMark";
import { PrecheckWays } from "../../../widgets/marks/PrecheckWays";
import classes from "../../../widgets/marks/PrecheckWays.module.css";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import panel from "./EvidencePanel.module.css";
import type { SectionProps } from "./sectionProps";

/** Is this operator itself wrong, or only fed wrong data? The pre-check results of both dumps for the call. */
export function PrecheckBox({ node }: SectionProps) {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { unit } = useSelection();
  const alone = useCallPrecheck(comparison.id, unit, node.address);
  const { checked } = useUnitPrecheck(comparison.id, unit);
  if (node.kind !== "api") return null;
  const missing = SIDES.filter((side) => checked && checked[side].total === 0);
  if (missing.length === SIDES.length) return null;
  return (
    <section className={panel.section} aria-label={t("alone.title")} data-testid="alone">
      <h3 className={panel.title}>
        <Term word="alone">{t("alone.title")}</Term> <span className="dim">{t("alone.question")}</span>
      </h3>
      {alone.error && <Failure problem={alone.error} />}
      {SIDES.map((side) => {
        const told = alone.data?.[side];
        if (told) return <PrecheckLine key={side} side={side} told={told} />;
        if (!alone.data || !checked || checked[side].total === 0) return null;
        return (
          <p key={side} className="dim">
            {t("alone.nothingSaid", { side: t(`comparison.${side}`) })}
          </p>
        );
      })}
      {!IN_FILE && missing.length > 0 && <HowTo sides={missing} comparison={comparison} />}
    </section>
  );
}

/** How to ask that, where neither side was; it stands behind what is known of the call. */
export function PrecheckUnasked({ node }: SectionProps) {
  const comparison = useShownComparison();
  const { unit } = useSelection();
  const { t } = useTranslation();
  const { checked } = useUnitPrecheck(comparison.id, unit);
  if (IN_FILE || node.kind !== "api" || !checked || SIDES.some((side) => checked[side].total > 0)) return null;
  return (
    <section className={panel.section} aria-label={t("alone.title")} data-testid="alone">
      <HowTo sides={SIDES} comparison={comparison} />
    </section>
  );
}

/** Closed, this takes one line, so the reason, the stack and the plot stay in view. */
function HowTo({ sides, comparison }: { sides: readonly Side[]; comparison: Comparison }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className={classes.summary} data-testid="alone-how">
        {sides.length === SIDES.length ? (
          <strong>
            <Term word="alone">{t("alone.title")}</Term>
          </strong>
        ) : (
          sides.map((side) => t(`comparison.${side}`)).join()
        )}{" "}
        <span className="dim">{t("alone.unchecked")}</span> <code>dumpscope precheck</code>
      </summary>
      {open &&
        sides.map((side) => (
          <PrecheckWays
            key={side}
            dump={comparison[side]}
            name={side}
            where={t("alone.where", { side: t(`comparison.${side}`) })}
            elsewhere={t("alone.elsewhere", { side: t(`comparison.${side}`) })}
          />
        ))}
    </details>
  );
}
