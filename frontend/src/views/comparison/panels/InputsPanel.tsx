import { useTranslation } from "../../../texts/useTranslation";
import { IoTable } from "../../../widgets/tensors/IoTable";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./EvidencePanel.module.css";
import type { SectionProps } from "./sectionProps";

/** What the call received and gave on both sides. */
export function InputsPanel({ node }: SectionProps) {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { address, update } = useSelection();
  return (
    <section id="section-inputs" className={classes.section} tabIndex={-1} aria-label={t("evidence.io")}>
      {node.item_count > 0 ? (
        <IoTable
          comparison={id}
          title={
            <>
              {t("evidence.io")} <span className="dim">{node.item_count}</span>
            </>
          }
          items={node.items}
          sort={address.numbers}
          onSort={(numbers) => update({ numbers }, true)}
        />
      ) : (
        <>
          <h3 className={classes.title}>
            {t("evidence.io")} <span className="dim">0</span>
          </h3>
          <p className={`${classes.nothing} dim`}>{t("evidence.noItems")}</p>
        </>
      )}
      {node.item_count > node.items.length && (
        <p className="dim">{t("evidence.truncated", { shown: node.items.length, total: node.item_count })}</p>
      )}
    </section>
  );
}
