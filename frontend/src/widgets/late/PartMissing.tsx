import { Button } from "@mantine/core";
import { useTranslation } from "../../texts/useTranslation";
import { Failure } from "../basic/States";
import classes from "./PartMissing.module.css";

/**
 * In place of a part whose script did not come: the server is away, or runs a newer version whose scripts have other names.
 *
 * overlay: the part lies over the page, so this does too
 */
export function PartMissing({ overlay, onRetry }: { overlay: boolean; onRetry: () => void }) {
  const { t } = useTranslation();
  return (
    <div className={overlay ? classes.over : undefined} data-testid="part-missing">
      <Failure title={t("app.partMissing")} problem={t("app.partMissingWhy")}>
        <div className={classes.actions}>
          <Button size="compact-xs" onClick={() => window.location.reload()} data-testid="reload">
            {t("app.reload")}
          </Button>
          <Button size="compact-xs" variant="default" onClick={onRetry}>
            {t("app.retry")}
          </Button>
        </div>
      </Failure>
    </div>
  );
}
