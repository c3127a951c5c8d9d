import { useTranslation } from "../../../texts/useTranslation";
import { Boundary } from "../../../widgets/basic/States";
import { lazyPart } from "../../../widgets/late/lazyPart";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Stage.module.css";

const PathPanel = lazyPart(async () => (await import("./PathPanel")).PathPanel);

/** What stands large in the place of tree and list, beside the evidence; the address names it. */
export function Stage() {
  const { t } = useTranslation();
  const { address, selected } = useSelection();
  if (address.stage !== "path" || selected === null) return null;
  return (
    <section className={`panel ${classes.stage}`} data-name="stage" data-testid="stage" aria-label={t("path.title")}>
      <Boundary title={t("app.crashed")} resetKey={`${address.stage} ${selected}`}>
        <PathPanel selected={selected} />
      </Boundary>
    </section>
  );
}
