import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { api, readReply } from "../../../api/client";
import { navigate } from "../../../base/address/location";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import classes from "./FirstSteps.module.css";

/** What to do where nothing was compared yet. */
export function FirstSteps() {
  const { t } = useTranslation();
  const sample = useMutation({
    mutationFn: () => readReply(api().POST("/api/sample")),
    onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`),
  });
  return (
    <div data-testid="first-steps">
      <p className={classes.lead}>{t("home.noComparisons")}</p>
      <ol className={classes.steps}>
        <li>{t("home.first.drop")}</li>
        <li>{t("home.first.paths")}</li>
        <li>
          {t("home.first.command")}
          <pre>dumpscope compare TARGET GOLDEN</pre>
        </li>
      </ol>
      <div className={classes.sample}>
        <Button size="compact-sm" loading={sample.isPending} onClick={() => sample.mutate()} data-testid="open-sample">
          {t("home.first.sample")}
        </Button>
        <span>{t("home.first.sampleHint")}</span>
      </div>
      {sample.error && <Failure problem={sample.error} />}
    </div>
  );
}
