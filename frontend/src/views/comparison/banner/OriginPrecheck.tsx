import { useCallPrecheck } from "../../../api/comparison/prechecks";
import type { NodeAlone, Origin } from "../../../api/types";
import { formatReal } from "../../../base/numbers/format";
import type { Translate } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import classes from "./Banner.module.css";

/** The pre-check result for an origin: wrong or right when run alone. Draws nothing without a pre-check. */
export function OriginPrecheck({ id, origin }: { id: string; origin: Origin }) {
  const { t } = useTranslation();
  const { data } = useCallPrecheck(id, { step: origin.step, rank: origin.rank }, origin.node);
  if (!data || (!data.target && data.golden?.word !== "fail")) return null;
  return (
    <p className={classes.reason} data-testid="origin-alone">
      {data.target && sentence(t, data.target)} {data.golden?.word === "fail" && t("alone.banner.golden")}
    </p>
  );
}

function sentence(t: Translate, { word, device, here, recorded }: NodeAlone): string {
  const units = (found: NodeAlone["here"]) => formatReal(found?.units ?? null, 3);
  if (here?.verdict === "error") return t("alone.banner.here", { device, units: units(here) });
  if (recorded?.verdict === "error") return t("alone.banner.recorded", { device, units: units(recorded) });
  if (word === "fail") return t("alone.banner.broke", { device });
  if (recorded && recorded.verdict !== "SKIP") return t("alone.banner.right");
  return word === "skip" ? t("alone.banner.skip") : t("alone.banner.rightHere", { device });
}
