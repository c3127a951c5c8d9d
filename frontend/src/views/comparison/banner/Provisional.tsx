import { Button } from "@mantine/core";
import { useCompareAgain } from "../../../api/changes";
import { useDump } from "../../../api/records";
import type { Comparison, Dump } from "../../../api/types";
import { navigate } from "../../../base/address/location";
import { IN_FILE } from "../../../base/inFile";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import classes from "./Banner.module.css";

/** What was still being written when it was compared, whether that has ended since, and the way to the whole answer. */
export function Provisional({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  const again = useCompareAgain();
  const target = useDump(comparison.target).data;
  const golden = useDump(comparison.golden).data;
  const growing = comparison.growing ?? [];
  const ended = growing.every(({ side }) => hasEnded(side === "target" ? target : golden));
  const start = () =>
    again.mutate(comparison, { onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`) });
  return (
    <div className={`${classes.reason} ${classes.warned}`} data-testid="grew" data-ended={ended}>
      <strong>{t("watch.isProvisional")}</strong>{" "}
      {growing.map(({ side, step, calls }) => (
        <span key={side}>
          {t("watch.grew", {
            side: t(`comparison.${side}`),
            step: step ?? 0,
            count: calls ?? 0,
            calls: formatCount(calls ?? 0),
          })}{" "}
        </span>
      ))}
      {!IN_FILE && (
        <>
          {t(ended ? "watch.grewEnded" : "watch.grewOn")}{" "}
          <Button
            variant="default"
            size="compact-xs"
            loading={again.isPending}
            onClick={start}
            data-testid="grew-again"
          >
            {t("comparison.again")}
          </Button>
        </>
      )}
      {again.error && <Failure problem={again.error} />}
    </div>
  );
}

/** Whether a watch saw the end; nobody knows where none looks. */
function hasEnded(dump: Dump | undefined): boolean {
  return dump?.watch?.condition === "ended" || dump?.watch?.condition === "still";
}
