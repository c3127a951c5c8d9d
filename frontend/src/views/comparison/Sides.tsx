import type { Comparison } from "../../api/types";
import { useTranslation } from "../../texts/useTranslation";
import { Link } from "../../widgets/basic/navigation";
import { Hint } from "../../widgets/late/Hint";
import classes from "./Controls.module.css";

/** The two dumps that are compared. */
export function Sides({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  return (
    <h1 className={classes.sides}>
      <Link
        to={`dumps/${encodeURIComponent(comparison.target)}`}
        title={`${t("comparison.target")}: ${comparison.target_name}`}
      >
        <bdi>{comparison.target_name}</bdi>
      </Link>
      <span className="dim" aria-hidden="true">
        ⇄
      </span>
      <span className="sr">{t("comparison.golden")}</span>
      <Link
        to={`dumps/${encodeURIComponent(comparison.golden)}`}
        title={`${t("comparison.golden")}: ${comparison.golden_name}`}
      >
        <bdi>{comparison.golden_name}</bdi>
      </Link>
    </h1>
  );
}

/** What of them was compared. */
export function Mode({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  if (!comparison.mode) return null;
  return (
    <Hint label={t("comparison.modeHint", { mode: comparison.mode })}>
      <span className={classes.mode} data-testid="mode">
        {t(`comparison.mode.${comparison.mode as "tensor"}`)}
      </span>
    </Hint>
  );
}
