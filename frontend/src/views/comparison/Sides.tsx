import type { Comparison } from "../../api/types";
import { IN_FILE } from "../../base/inFile";
import { useTranslation } from "../../texts/useTranslation";
import { Link } from "../../widgets/basic/navigation";
import { Hint } from "../../widgets/late/Hint";
import classes from "./Controls.module.css";

/** The two dumps that are compared. */
export function Sides({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  return (
    <h1 className={classes.sides}>
      <DumpName id={comparison.target} name={comparison.target_name} side={t("comparison.target")} />
      <span className="dim" aria-hidden="true">
        ⇄
      </span>
      <span className="sr">{t("comparison.golden")}</span>
      <DumpName id={comparison.golden} name={comparison.golden_name} side={t("comparison.golden")} />
    </h1>
  );
}

function DumpName({ id, name, side }: { id: string; name: string; side: string }) {
  const title = `${side}: ${name}`;
  if (IN_FILE) return <bdi title={title}>{name}</bdi>;
  return (
    <Link to={`dumps/${encodeURIComponent(id)}`} title={title}>
      <bdi>{name}</bdi>
    </Link>
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
