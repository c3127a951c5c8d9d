import { ActionIcon, Select, Tooltip } from "@mantine/core";
import { useSetPolicy } from "../../api/changes";
import type { Comparison } from "../../api/types";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../../widgets/basic/Icon";
import { Link } from "../../widgets/basic/navigation";
import { describeProblem } from "../../widgets/basic/States";
import { UnitPicker } from "../../widgets/page/UnitPicker";
import classes from "./Controls.module.css";
import { ExportMenu } from "./ExportMenu";
import { useResult, useShownComparison } from "./selection/result";
import { useSelection } from "./selection/SelectionProvider";
import { useCopyLink } from "./selection/useCopyLink";

const POLICIES = ["default", "ptdbg", "msprobe"] as const;

export function Sides({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  return (
    <h1 className={classes.sides}>
      <Link
        to={`dumps/${encodeURIComponent(comparison.target)}`}
        title={`${t("comparison.target")}: ${comparison.target_name}`}
      >
        <bdi>{comparison.target_name}</bdi>
      </Link>
      <span className="dim" aria-hidden="true">
        ⇄
      </span>
      <span className="sr">{t("comparison.golden")}</span>
      <Link
        to={`dumps/${encodeURIComponent(comparison.golden)}`}
        title={`${t("comparison.golden")}: ${comparison.golden_name}`}
      >
        <bdi>{comparison.golden_name}</bdi>
      </Link>
    </h1>
  );
}

/** The header of the triage screen: what is compared, which part of it is shown, and what to do with it. */
export function Controls({ onHelp }: { onHelp: () => void }) {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { summary, steps, ranks } = useResult();
  const { unit: shown, update } = useSelection();
  const copyLink = useCopyLink();
  const policy = useSetPolicy(comparison.id);
  const units = summary?.units ?? [];
  const bad = units.filter((unit) => unit.origins > 0 || unit.verdict === "no");
  const known = POLICIES.find((name) => name === comparison.policy);
  return (
    <>
      <Sides comparison={comparison} />
      {comparison.mode && (
        <Tooltip label={t("comparison.modeHint", { mode: comparison.mode })}>
          <span className={classes.mode} data-testid="mode">
            {t(`comparison.mode.${comparison.mode as "tensor"}`)}
          </span>
        </Tooltip>
      )}
      <span className={classes.space} />
      <UnitPicker
        step={shown?.step ?? null}
        rank={shown?.rank ?? null}
        steps={steps}
        ranks={ranks}
        badSteps={new Set(bad.map((unit) => unit.step))}
        badRanks={new Set(bad.filter((unit) => unit.step === shown?.step).map((unit) => unit.rank))}
        onStep={(step) => update({ step })}
        onRank={(rank) => update({ rank })}
      />
      <span className={classes.policy}>
        <span className="dim">{t("comparison.policy")}</span>
        <Select
          aria-label={t("comparison.policy")}
          title={t("comparison.policyHint")}
          data-testid="policy"
          w={104}
          allowDeselect={false}
          disabled={policy.isPending}
          data={[
            ...POLICIES.map((name) => ({ value: name as string, label: t(`comparison.policies.${name}`) })),
            ...(known ? [] : [{ value: comparison.policy, label: comparison.policy.split("\n")[0] ?? "" }]),
          ]}
          value={comparison.policy}
          error={policy.error ? describeProblem(policy.error).detail : undefined}
          onChange={(name) => name !== null && name !== comparison.policy && policy.mutate(name)}
        />
        <Tooltip label={`${t("policy.title")} (t)`}>
          <ActionIcon
            aria-label={t("policy.title")}
            onClick={() => update({ dialog: "policy" })}
            data-testid="open-policy"
          >
            <Icon name="scale" />
          </ActionIcon>
        </Tooltip>
      </span>
      <Tooltip label={`${t("matching.list")} (M)`}>
        <ActionIcon
          aria-label={t("matching.list")}
          onClick={() => update({ dialog: "matches" })}
          data-testid="hand-matches"
        >
          <Icon name="pair" />
        </ActionIcon>
      </Tooltip>
      <ExportMenu />
      <Tooltip label={`${t("comparison.copyLink")} (c)`}>
        <ActionIcon
          aria-label={t("comparison.copyLink")}
          onClick={() => void copyLink()}
          data-first-row
          data-testid="copy-link"
        >
          <Icon name="link" />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={`${t("comparison.help")} (?)`}>
        <ActionIcon aria-label={t("comparison.help")} onClick={onHelp} data-first-row data-testid="help">
          <Icon name="help" />
        </ActionIcon>
      </Tooltip>
    </>
  );
}
