import { useTranslation } from "../../../texts/useTranslation";
import { Boundary } from "../../../widgets/basic/States";
import { useSelection } from "../selection/SelectionProvider";
import { PathPanel } from "./PathPanel";
import classes from "./Stage.module.css";

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
