import { Button, SegmentedControl, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useSetPolicy } from "../../../api/changes";
import { api, readReply } from "../../../api/client";
import { comparisonPath } from "../../../api/records";
import type { Comparison, PolicyTrial } from "../../../api/types";
import { VERDICTS } from "../../../base/comparison/verdicts";
import { exactReal, formatCount, formatError } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Failure } from "../../../widgets/basic/States";
import { VerdictMark } from "../../../widgets/marks/Mark";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Policies.module.css";

const NAMED = ["default", "ptdbg", "msprobe"] as const;
const OWN = "own";

/** What a policy file looks like: every key with a value that changes nothing. */
const TEMPLATE = `name: ours
base: default
warn: 3.0            # a warning up to so many times the floor
floors:
  float32: {bulk: 1e-4, peak: 1e-3}
  bfloat16: {bulk: 1e-2, peak: 3.1e-2}
scale: {}            # {"layers.[0-9]+.norm": 10} widens the floors of such calls
ignore: []           # ["dropout"] are never judged
`;

/** The policy that judges the comparison: a name, or the text of a file (`policy` holds only the name of a file). */
function judgingPolicy(comparison: Comparison): string {
  return String(comparison.options.policy ?? "default");
}

/** Tolerances: another policy tried on this step and rank, and the comparison judged by it. */
export function Policies() {
  const comparison = useShownComparison();
  return <PolicyForm key={judgingPolicy(comparison)} comparison={comparison} />;
}

function PolicyForm({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  const { unit, update } = useSelection();
  const used = judgingPolicy(comparison);
  const known = NAMED.find((name) => name === used);
  const [chosen, setChosen] = useState<string>(known ?? OWN);
  const [text, setText] = useState(known ? TEMPLATE : used);
  const policy = chosen === OWN ? text : chosen;
  const attempt = useMutation({
    mutationFn: (wanted: string): Promise<PolicyTrial> =>
      readReply(
        api().POST("/api/comparisons/{comparison_id}/policies/try", {
          params: { path: comparisonPath(comparison.id), query: { ...unit } },
          body: { policy: wanted },
        }),
      ),
  });
  const judge = useSetPolicy(comparison.id);
  const tried = attempt.variables === policy ? attempt.data : undefined;
  return (
    <div className={classes.panel} data-testid="policies">
      <SegmentedControl
        aria-label={t("comparison.policy")}
        data={[
          ...NAMED.map((name) => ({ value: name as string, label: t(`comparison.policies.${name}`) })),
          { value: OWN, label: t("policy.own") },
        ]}
        value={chosen}
        onChange={setChosen}
      />
      <p className="dim">{t(`policy.about.${chosen as "default"}`)}</p>
      {chosen === OWN && (
        <Textarea
          aria-label={t("policy.text")}
          classNames={{ input: "mono" }}
          autosize
          minRows={6}
          maxRows={16}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          data-testid="policy-text"
        />
      )}
      <div className={classes.buttons}>
        <Button
          variant="default"
          size="compact-sm"
          loading={attempt.isPending}
          onClick={() => attempt.mutate(policy)}
          data-testid="try-policy"
        >
          {t("policy.try")}
        </Button>
        <Button
          size="compact-sm"
          loading={judge.isPending}
          disabled={policy === used}
          onClick={() => {
            // Not in a callback of the mutation: the new policy may have replaced this panel before it runs.
            judge.mutateAsync(policy).then(
              () => update({ dialog: null }),
              () => undefined,
            );
          }}
          data-testid="judge-policy"
        >
          {t("policy.judge")}
        </Button>
        <span className="dim">{t("policy.kept")}</span>
      </div>
      {attempt.error && <Failure problem={attempt.error} />}
      {judge.error && <Failure problem={judge.error} />}
      {tried && <DryRun trial={tried} />}
    </div>
  );
}

function DryRun({ trial }: { trial: PolicyTrial }) {
  const { t } = useTranslation();
  const { update } = useSelection();
  const changed = t("policy.changed", { count: trial.changed, total: formatCount(trial.changed) });
  return (
    <div data-testid="policy-trial">
      <table className={classes.table}>
        <caption>{t("policy.counts", { step: trial.step, rank: trial.rank })}</caption>
        <thead>
          <tr>
            <th scope="col">{t("list.reached")}</th>
            <th scope="col">{t("policy.now")}</th>
            <th scope="col">{t("policy.tried")}</th>
          </tr>
        </thead>
        <tbody>
          {VERDICTS.map((verdict) => (
            <tr key={verdict} data-verdict={verdict}>
              <th scope="row">
                <VerdictMark verdict={verdict} />
              </th>
              <td className="num">{formatCount(trial.before[verdict])}</td>
              <td className="num">{formatCount(trial.after[verdict])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>{changed}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      <ul className={classes.rows} tabIndex={0} aria-label={changed}>
        {trial.rows.map((row) => (
          <li key={row.name}>
            <button type="button" className="plain" onClick={() => update({ node: row.name, dialog: null })}>
              <MiddleName name={row.name} tail={28} />
            </button>
            <span>
              <VerdictMark verdict={row.before} /> → <VerdictMark verdict={row.after} />
            </span>
            <span className="num dim" title={`${t("policy.score")}: ${exactReal(row.score)}`}>
              {formatError(null, row.score)}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
