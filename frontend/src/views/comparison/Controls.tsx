import { ActionIcon, Select, Tooltip } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useSetPolicy } from "../../api/changes";
import type { Comparison, Summary } from "../../api/types";
import { Icon } from "../../widgets/basic/Icon";
import { Link } from "../../widgets/basic/navigation";
import { describeProblem } from "../../widgets/basic/States";
import { UnitPicker } from "../../widgets/page/UnitPicker";
import classes from "./Controls.module.css";
import { ExportMenu } from "./ExportMenu";
import type { Triage } from "./useTriage";

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

interface ControlsProps {
  comparison: Comparison;
  summary: Summary | undefined;
  triage: Triage;
  onHelp: () => void;
}

/** The header of the triage screen: what is compared, which part of it is shown, and what to do with it. */
export function Controls({ comparison, summary, triage, onHelp }: ControlsProps) {
  const { t } = useTranslation();
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
        step={triage.unit?.step ?? null}
        rank={triage.unit?.rank ?? null}
        steps={triage.steps}
        ranks={triage.ranks}
        badSteps={new Set(bad.map((unit) => unit.step))}
        badRanks={new Set(bad.filter((unit) => unit.step === triage.unit?.step).map((unit) => unit.rank))}
        onStep={triage.setStep}
        onRank={triage.setRank}
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
            onClick={() => triage.update({ dialog: "policy" })}
            data-testid="open-policy"
          >
            <Icon name="scale" />
          </ActionIcon>
        </Tooltip>
      </span>
      <Tooltip label={`${t("matching.list")} (M)`}>
        <ActionIcon
          aria-label={t("matching.list")}
          onClick={() => triage.update({ dialog: "matches" })}
          data-testid="hand-matches"
        >
          <Icon name="pair" />
        </ActionIcon>
      </Tooltip>
      <ExportMenu comparison={comparison} triage={triage} />
      <Tooltip label={`${t("comparison.copyLink")} (c)`}>
        <ActionIcon aria-label={t("comparison.copyLink")} onClick={triage.copyLink} data-testid="copy-link">
          <Icon name="link" />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={`${t("comparison.help")} (?)`}>
        <ActionIcon aria-label={t("comparison.help")} onClick={onHelp} data-testid="help">
          <Icon name="help" />
        </ActionIcon>
      </Tooltip>
    </>
  );
}
