import { ActionIcon, Select, Tooltip } from "@mantine/core";
import { useSetPolicy } from "../../api/changes";
import type { Origin, Summary } from "../../api/types";
import { GLYPHS, unitMark } from "../../base/comparison/verdicts";
import { IN_FILE } from "../../base/inFile";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../../widgets/basic/Icon";
import { describeProblem } from "../../widgets/basic/States";
import { UnitPicker } from "../../widgets/page/UnitPicker";
import classes from "./Controls.module.css";
import { ExportMenu } from "./ExportMenu";
import { useResult, useShownComparison } from "./selection/result";
import { useSelection } from "./selection/SelectionProvider";
import { useCopyLink } from "./selection/useCopyLink";

const POLICIES = ["default", "ptdbg", "msprobe"] as const;

/** The header of the triage screen behind what is compared: which part of it is shown, and what to do with it. */
export function Controls({ onHelp }: { onHelp: () => void }) {
  const { t } = useTranslation();
  const { summary, steps, ranks, origins } = useResult();
  const { unit: shown, update } = useSelection();
  const units = summary?.units ?? [];
  const marked = units.filter((unit) => unit.origins > 0 || unit.verdict === "no");
  return (
    <>
      <span className={classes.space} />
      <UnitPicker
        step={shown?.step ?? null}
        rank={shown?.rank ?? null}
        steps={steps}
        ranks={ranks}
        stepGlyphs={worstGlyphs(marked, "step", origins)}
        rankGlyphs={worstGlyphs(
          marked.filter((unit) => unit.step === shown?.step),
          "rank",
          origins,
        )}
        onStep={(step) => update({ step })}
        onRank={(rank) => update({ rank })}
      />
      {!IN_FILE && <ServerControls />}
      <Tooltip label={`${t("comparison.help")} (?)`}>
        <ActionIcon aria-label={t("comparison.help")} onClick={onHelp} data-first-row data-testid="help">
          <Icon name="help" />
        </ActionIcon>
      </Tooltip>
    </>
  );
}

/** What only a server does, or what is of use to others only if there is one. */
function ServerControls() {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { update } = useSelection();
  const copyLink = useCopyLink();
  const policy = useSetPolicy(comparison.id);
  const known = POLICIES.find((name) => name === comparison.policy);
  return (
    <>
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
    </>
  );
}

/** The glyph behind each step or rank that has a No: a fault of its own before any other. */
function worstGlyphs(
  units: Summary["units"],
  by: "step" | "rank",
  origins: readonly Origin[],
): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const unit of units) {
    const { glyph } = unitMark(unit, origins);
    const known = found.get(unit[by]);
    if (known === undefined || glyph === GLYPHS.origin || known === GLYPHS.propagated) found.set(unit[by], glyph);
  }
  return found;
}
