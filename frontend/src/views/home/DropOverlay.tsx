import { useState } from "react";
import { SIDES, type Side } from "../../base/comparison/sides";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../../widgets/basic/Icon";
import classes from "./DropOverlay.module.css";

/** While files are held over the page: where each part of it would put them. over: the part below the pointer */
export function DropOverlay({ over }: { over: Side | "page" }) {
  const { t } = useTranslation();
  const [columns] = useState(alignColumns);
  return (
    <div className={classes.overlay} style={{ gridTemplateColumns: columns }} data-testid="drop-overlay">
      {SIDES.map((side) => (
        <div key={side} className={classes.part} data-side={side} data-over={over === side || undefined}>
          <Icon name="upload" size={28} />
          <strong>{t(`home.${side}`)}</strong>
          <span>{t(side === "target" ? "home.targetHint" : "home.goldenHint")}</span>
        </div>
      ))}
      <div className={classes.part} data-over={over === "page" || undefined}>
        <strong>{t("home.add")}</strong>
        <span>{t("home.dropOnly")}</span>
      </div>
      <p className={classes.two}>{t("home.dropTwo")}</p>
    </div>
  );
}

const GAP = 12;

/** Columns over the two sides and the card beside them, so that files land where they were aimed; equal ones where these stand
 * below each other. */
function alignColumns(): string | undefined {
  const places = ['[data-side="target"]', '[data-side="golden"]', '[aria-labelledby="add-title"]'].map((one) =>
    document.querySelector(one)?.getBoundingClientRect(),
  );
  const [target, golden, add] = places;
  if (!target || !golden || !add || golden.left < target.right || add.left < golden.right) return undefined;
  const first = (target.right + golden.left) / 2;
  const second = (golden.right + add.left) / 2;
  return `${first - 1.5 * GAP}px ${second - first - GAP}px minmax(0, 1fr)`;
}
