import { useTranslation } from "react-i18next";
import { onlySide } from "../../../base/comparison/unmatched";
import { Stack } from "../../../widgets/source/Stack";
import classes from "./EvidencePanel.module.css";
import type { SectionProps } from "./sectionProps";

/** The call stacks of both runs, the target's first. */
export function StackPanel({ node }: SectionProps) {
  const { t } = useTranslation();
  return (
    <section id="section-stack" className={classes.section} tabIndex={-1} aria-label={t("evidence.stack")}>
      <Stack
        heading={t("evidence.stack")}
        label={t("comparison.target")}
        frames={node.target_stack}
        other={node.golden_stack}
        missing={onlySide(node) === "golden" ? t("evidence.stackNoPartner") : t("evidence.stackNone")}
      />
      <Stack
        label={t("comparison.golden")}
        frames={node.golden_stack}
        other={node.target_stack}
        brief
        missing={onlySide(node) === "target" ? t("evidence.stackNoPartner") : t("evidence.stackNone")}
      />
    </section>
  );
}
