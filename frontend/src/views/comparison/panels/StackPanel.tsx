import { onlySide } from "../../../base/comparison/unmatched";
import { useTranslation } from "../../../texts/useTranslation";
import { Stack } from "../../../widgets/source/Stack";
import classes from "./EvidencePanel.module.css";
import type { SectionProps } from "./sectionProps";

/** The call stacks of both runs, the target's first. */
export function StackPanel({ node }: SectionProps) {
  const { t } = useTranslation();
  const target = { texts: node.target_stack, frames: node.target_frames };
  const golden = { texts: node.golden_stack, frames: node.golden_frames };
  return (
    <section id="section-stack" className={classes.section} tabIndex={-1} aria-label={t("evidence.stack")}>
      <Stack
        heading={t("evidence.stack")}
        label={t("comparison.target")}
        of={target}
        other={golden}
        missing={onlySide(node) === "golden" ? t("evidence.stackNoPartner") : t("evidence.stackNone")}
      />
      <Stack
        label={t("comparison.golden")}
        of={golden}
        other={target}
        brief
        missing={onlySide(node) === "target" ? t("evidence.stackNoPartner") : t("evidence.stackNone")}
      />
    </section>
  );
}
