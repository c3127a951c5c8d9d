import { useSource } from "../../../api/comparison/nodes";
import { onlySide } from "../../../base/comparison/unmatched";
import { IN_FILE } from "../../../base/inFile";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure, Loading } from "../../../widgets/basic/States";
import { SourceLines, useNoSource } from "../../../widgets/source/SourceLines";
import { Stack } from "../../../widgets/source/Stack";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./EvidencePanel.module.css";
import type { SectionProps } from "./sectionProps";

/** Windows in which stacks leave their room to the source, so that the numbers stay in view: low ones whose panels stand side by side. */
const TIGHT = "(max-height: 1200px) and (min-width: 981px)";

const ORIGINS: ReadonlySet<string> = new Set(["origin", "nonfinite"]);

/** The call stacks of both runs, the target's first, and the source around the user's line. */
export function StackPanel({ node }: SectionProps) {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { unit } = useSelection();
  const { data: source, error, isPlaceholderData, refetch } = useSource(id, unit, node.address);
  const none = useNoSource(source);
  const target = { texts: node.target_stack, frames: node.target_frames };
  const golden = { texts: node.golden_stack, frames: node.golden_frames };
  const tight = source !== undefined && source.rows.length > 0 && window.matchMedia(TIGHT).matches;
  return (
    <section id="section-stack" className={classes.section} tabIndex={-1} aria-label={t("evidence.stack")}>
      <Stack
        heading={t("evidence.stack")}
        label={t("comparison.target")}
        of={target}
        other={golden}
        tight={tight}
        aside={none.button}
        missing={onlySide(node) === "golden" ? t("evidence.stackNoPartner") : t("evidence.stackNone")}
      />
      <Stack
        label={t("comparison.golden")}
        of={golden}
        other={target}
        brief
        tight={tight}
        missing={onlySide(node) === "target" ? t("evidence.stackNoPartner") : t("evidence.stackNone")}
      />
      {none.words}
      {error ? (
        <Failure title={t("source.failed")} problem={error} onRetry={() => void refetch()} />
      ) : source ? (
        <SourceLines source={source} stale={isPlaceholderData} origin={ORIGINS.has(node.cls)} />
      ) : (
        !IN_FILE && <Loading />
      )}
    </section>
  );
}
