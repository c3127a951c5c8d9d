import { ActionIcon, Button, Tooltip } from "@mantine/core";
import { useHandChange, useHandMatches } from "../../../api/comparison/matches";
import type { NodeDetail } from "../../../api/types";
import { nameOnSide, onlySide } from "../../../base/comparison/unmatched";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { Failure } from "../../../widgets/basic/States";
import { useSay } from "../selection/notice";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Matching.module.css";

/** Buttons that match or unmatch the selected call: a pair seldom needs them, a call without a partner asks for one. */
export function MatchActions({ node }: { node: NodeDetail }) {
  const { t } = useTranslation();
  const say = useSay();
  const { id: comparison } = useShownComparison();
  const { unit, update } = useSelection();
  const change = useHandChange(comparison, unit);
  const edits = useHandMatches(comparison, unit);
  const names = { target: nameOnSide(node, "target"), golden: nameOnSide(node, "golden") };
  const waits = edits.data?.edits.find(
    (edit) =>
      edit.state === "waiting" &&
      ((edit.target !== null && edit.target === names.target) ||
        (edit.golden !== null && edit.golden === names.golden)),
  );
  const find = () => update({ dialog: "match" });
  const part = () =>
    change.mutate(
      { kind: "unmatch", side: "target", node: names.target ?? node.name },
      { onSuccess: () => say(t("matching.parted")) },
    );
  return (
    <div className={classes.actions}>
      {onlySide(node) === null ? (
        <>
          <Tooltip label={`${t("matching.with")} (m)`}>
            <ActionIcon size="sm" aria-label={t("matching.with")} onClick={find} data-testid="match-with">
              <Icon name="pair" size={12} />
            </ActionIcon>
          </Tooltip>
          <Tooltip label={t("matching.part")}>
            <ActionIcon
              size="sm"
              aria-label={t("matching.part")}
              loading={change.isPending}
              onClick={part}
              data-testid="unmatch"
            >
              <Icon name="unpair" size={12} />
            </ActionIcon>
          </Tooltip>
        </>
      ) : (
        <Button variant="default" size="compact-xs" onClick={find} data-testid="match-with">
          {t("matching.with")}
        </Button>
      )}
      {waits && (
        <span className={classes.waits} data-testid="match-waits">
          {waits.kind === "match"
            ? t("matching.waitsFor", { name: waits.target === names.target ? waits.golden : waits.target })
            : t("matching.waitsParted")}
        </span>
      )}
      {change.error && <Failure problem={change.error} />}
    </div>
  );
}
