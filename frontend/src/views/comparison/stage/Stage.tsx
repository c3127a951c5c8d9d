import { useTranslation } from "../../../texts/useTranslation";
import { Boundary } from "../../../widgets/basic/States";
import { followHeight } from "../../../widgets/basic/sizes";
import { lazyPart } from "../../../widgets/late/lazyPart";
import { useSelectionNow } from "../selection/Following";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Stage.module.css";

const PlotPanel = lazyPart(async () => (await import("../panels/PlotPanel")).PlotPanel);
const PathPanel = lazyPart(async () => (await import("./PathPanel")).PathPanel);

/** What stands large in the place of tree and list, beside the evidence; the address names it. */
export function Stage() {
  const { t } = useTranslation();
  const { address, selected } = useSelection();
  const { stage } = useSelectionNow().address; // what it covers can have the focus as soon as it goes
  if (stage === null || selected === null) return null;
  const label = t(stage === "path" ? "path.title" : "evidence.plots");
  return (
    <section className={`panel ${classes.stage}`} data-name="stage" data-testid="stage" aria-label={label}>
      <Boundary title={t("app.crashed")} resetKey={`${stage} ${selected} ${address.tab}`}>
        {stage === "path" ? (
          <PathPanel selected={selected} />
        ) : (
          <div ref={followHeight} className={classes.plot}>
            <PlotPanel stage />
          </div>
        )}
      </Boundary>
    </section>
  );
}
