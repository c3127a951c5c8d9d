import { Button, Checkbox, Textarea } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useCompareAgain } from "../../../api/changes";
import { useProposals, useRulesPreview } from "../../../api/comparison/matches";
import type { LeftCall, MatchingPreview, ProposedRule, RuleProposals } from "../../../api/types";
import { navigate } from "../../../base/address/location";
import { SIDES, type Side } from "../../../base/comparison/sides";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Failure, Loading } from "../../../widgets/basic/States";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Assistant.module.css";

/** Calls without a partner named per side. */
const SHOWN = 40;

/** Where most calls have no partner: rename rules to compare again with, before a verdict on the rest is read. */
export function Assistant() {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { unit } = useSelection();
  const found = useProposals(id, unit);
  return (
    <div className={classes.panel} data-testid="assistant">
      {found.isPending && <Loading label={t("assistant.looking")} />}
      {found.error && <Failure problem={found.error} onRetry={() => void found.refetch()} />}
      {found.data && <ProposedRules found={found.data} />}
    </div>
  );
}

function ProposedRules({ found }: { found: RuleProposals }) {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { unit, update } = useSelection();
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [own, setOwn] = useState("");
  const again = useCompareAgain();
  const accept = useRef<HTMLButtonElement>(null);
  const skip = useRef<HTMLButtonElement>(null);
  const before = (comparison.options.rename ?? []) as string[];
  const written = own
    .split("\n")
    .map((rule) => rule.trim())
    .filter((rule) => rule !== "");
  const rules = [...written, ...found.rules.map(({ rule }) => rule).filter((rule) => !off.has(rule))];
  const asProposed = written.length === 0 && off.size === 0;
  const wanted = useDebounced(rules.join("\n"), 300);
  const tried = useRulesPreview(comparison.id, unit, asProposed ? null : [...before, ...wanted.split("\n")]);
  const after = asProposed ? found.after : rules.join("\n") === wanted ? tried.data : undefined;
  // One key accepts, or shows the verdict where nothing is proposed: the button waits under Enter.
  const proposed = found.rules.length > 0;
  useEffect(() => (accept.current?.disabled ? skip : accept).current?.focus(), []);

  const start = () =>
    again.mutate(
      { ...comparison, options: { ...comparison.options, rename: [...before, ...rules] } },
      { onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`) },
    );
  const toggle = (rule: string, on: boolean) => {
    const next = new Set(off);
    if (on) next.delete(rule);
    else next.add(rule);
    setOff(next);
  };
  return (
    <>
      <p data-testid="assistant-now">
        {t(found.now.left_count === 0 ? "assistant.allPaired" : "assistant.left", {
          left: formatCount(found.now.left_count),
          pairs: formatCount(found.now.pairs),
          step: found.now.step,
          rank: found.now.rank,
        })}{" "}
        {found.rules.length > 0 ? t("assistant.proposed") : found.now.left_count > 0 && t("assistant.nothing")}
      </p>
      {found.rules.length > 0 && <Rules rules={found.rules} off={off} onToggle={toggle} />}
      <Textarea
        size="xs"
        label={t("assistant.own")}
        description={t("home.renameHint")}
        autosize
        minRows={1}
        maxRows={6}
        spellCheck={false}
        value={own}
        onChange={(event) => setOwn(event.currentTarget.value)}
        styles={{ input: { fontFamily: "var(--mono)" } }}
        data-testid="own-rules"
      />
      {tried.error && !asProposed && <Failure problem={tried.error} />}
      {rules.length > 0 && <RulesEffect now={found.now} after={after} />}
      <div className={classes.actions}>
        <Button
          ref={accept}
          data-autofocus={proposed || undefined}
          disabled={rules.length === 0}
          loading={again.isPending}
          onClick={start}
          data-testid="assistant-accept"
        >
          {t("assistant.accept")}
        </Button>
        <Button
          ref={skip}
          data-autofocus={!proposed || undefined}
          variant="default"
          onClick={() => update({ dialog: null })}
          data-testid="assistant-skip"
        >
          {t("assistant.skip")}
        </Button>
        {rules.length > 0 && <span className="dim">{t("assistant.hint")}</span>}
      </div>
      {again.error && <Failure problem={again.error} />}
      {found.now.left_count > 0 && (
        <details open={found.rules.length === 0}>
          <summary>{t("assistant.leftTitle")}</summary>
          <div className={classes.sides}>
            {SIDES.map((side) => (
              <UnmatchedCalls key={side} side={side} calls={(after ?? found.now).left} />
            ))}
          </div>
        </details>
      )}
    </>
  );
}

interface RulesProps {
  rules: readonly ProposedRule[];
  off: ReadonlySet<string>;
  onToggle: (rule: string, on: boolean) => void;
}

function Rules({ rules, off, onToggle }: RulesProps) {
  const { t } = useTranslation();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
    // biome-ignore lint/a11y/useSemanticElements: a box that scrolls
    <div className={classes.rules} role="group" tabIndex={0} aria-label={t("assistant.rules")}>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">{t("assistant.target")}</th>
            <th scope="col">{t("assistant.golden")}</th>
            <th scope="col" className="num">
              {t("home.tried.made")}
            </th>
          </tr>
        </thead>
        <tbody>
          {rules.map(({ rule, pairs, examples }) => (
            <tr key={rule} data-testid="proposed-rule">
              <td>
                <Checkbox
                  size="xs"
                  checked={!off.has(rule)}
                  onChange={(event) => onToggle(rule, event.currentTarget.checked)}
                  label={<span className="mono">{examples[0]?.label}</span>}
                  title={rule}
                />
              </td>
              <td className="mono" title={rule}>
                {examples[0]?.renamed}
              </td>
              <td className="num">{off.has(rule) ? "—" : formatCount(pairs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the chosen rules would change; counted again after a change of them. */
function RulesEffect({ now, after }: { now: MatchingPreview; after: MatchingPreview | undefined }) {
  const { t } = useTranslation();
  return (
    <p data-testid="assistant-effect" aria-live="polite">
      {after ? (
        <>
          <strong className="num">
            {t("assistant.effect", { now: formatCount(now.pairs), after: formatCount(after.pairs) })}
          </strong>{" "}
          <span className="dim">
            {after.left_count === 0
              ? t("home.tried.allPaired")
              : t("home.tried.left", { count: after.left_count, total: formatCount(after.left_count) })}
          </span>
        </>
      ) : (
        <span className="dim">{t("assistant.counting")}</span>
      )}
    </p>
  );
}

function UnmatchedCalls({ side, calls }: { side: Side; calls: readonly LeftCall[] }) {
  const { t } = useTranslation();
  const mine = calls.filter((call) => call.side === side);
  return (
    <section aria-label={t(`comparison.${side}`)}>
      <h3 className={classes.side}>{t(`comparison.${side}`)}</h3>
      <ul className={classes.left}>
        {mine.slice(0, SHOWN).map(({ name }) => (
          <li key={name}>
            <MiddleName name={name} />
          </li>
        ))}
        {mine.length > SHOWN && <li className="dim">…</li>}
      </ul>
    </section>
  );
}
