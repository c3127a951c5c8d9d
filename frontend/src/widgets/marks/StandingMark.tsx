import type { Standing } from "../../api/types";
import { formatReal, type Real, toNumber } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./StandingMark.module.css";

/** A side is farther from the reference above this ratio (docs/reference.md). */
const FARTHER = 2;

const times = (ratio: Real) => `${formatReal(ratio, 3)}×`;

/** Which side is farther from the absolute reference, and how many times. */
export function StandingMark({ standing, words = false }: { standing: Standing | null; words?: boolean }) {
  const { t } = useTranslation();
  if (standing === null) return <span className="dim">{words ? t("reference.none") : ""}</span>;
  const farther = above(standing.ratio) ? "target" : above(standing.inverse) ? "golden" : "alike";
  const distances = t("reference.distances", {
    target: formatReal(standing.target, 3),
    golden: formatReal(standing.golden, 3),
    measure: t(`reference.measures.${standing.measure}`),
  });
  const ratio = farther === "golden" ? standing.inverse : standing.ratio;
  const said = t(`reference.farther.${farther}`, { ratio: times(ratio) });
  return (
    <span className={classes.mark} data-farther={farther} title={`${said} ${distances}`} data-testid="standing">
      {words
        ? `${said} ${distances}`
        : farther === "golden"
          ? t("reference.goldenBrief", { ratio: times(ratio) })
          : times(ratio)}
    </span>
  );
}

function above(ratio: Real): boolean {
  return (toNumber(ratio) ?? Number.NaN) > FARTHER || ratio === "inf";
}
