import { Button } from "@mantine/core";
import { useCompareAgain } from "../../api/changes";
import type { Comparison } from "../../api/types";
import { navigate } from "../../base/address/location";
import { IN_FILE } from "../../base/inFile";
import { useTranslation } from "../../texts/useTranslation";
import { Failure } from "../../widgets/basic/States";
import classes from "./ComparisonView.module.css";

/** main: it is the way on; after a failure, which it may repeat, it is not. */
export function Again({ comparison, main = false }: { comparison: Comparison; main?: boolean }) {
  const { t } = useTranslation();
  const again = useCompareAgain();
  const start = () =>
    again.mutate(comparison, { onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`) });
  return (
    <div className={classes.again}>
      <Button variant={main ? "filled" : "default"} loading={again.isPending} onClick={start} data-testid="again">
        {t("comparison.again")}
      </Button>
      <span className="dim">{t("comparison.againHint")}</span>
      {again.error && <Failure problem={again.error} />}
    </div>
  );
}

/** A result that was stored before suspects were found says so, and how to get them. */
export function OlderResult({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  return (
    <div className={classes.older} data-testid="older-result">
      <span>{t("comparison.older")}</span>
      {!IN_FILE && <Again comparison={comparison} />}
    </div>
  );
}
