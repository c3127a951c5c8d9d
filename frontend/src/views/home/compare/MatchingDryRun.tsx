import type { MatchingPreview } from "../../../api/types";
import { formatCount } from "../../../base/numbers/format";
import { isText } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { UnmatchedChip } from "../../../widgets/marks/Mark";
import classes from "../HomeView.module.css";

const SHOWN_LEFT = 30;

/** Result of a matching dry run: pairs by method, effect of each rule, calls without a partner. */
export function MatchingDryRun({ found }: { found: MatchingPreview }) {
  const { t } = useTranslation();
  return (
    <div className={classes.tried} data-testid="tried">
      <p>
        <strong>{t("home.tried.pairs", { count: found.pairs, total: formatCount(found.pairs) })}</strong>{" "}
        {Object.entries(found.methods)
          .map(
            ([word, count]) =>
              `${formatCount(count)} ${isText(`match.${word}`) ? t(`match.${word as "exact"}`) : word}`,
          )
          .join(" · ")}{" "}
        <span className="dim">({t("home.tried.unit", { step: found.step, rank: found.rank })})</span>
      </p>
      {found.rules.length > 0 && (
        <table className={classes.rules}>
          <thead>
            <tr>
              <th className={classes.ruleHead}>{t("home.tried.rule")}</th>
              <th className={classes.ruleHead}>{t("home.tried.labels")}</th>
              <th className={classes.ruleHead}>{t("home.tried.made")}</th>
            </tr>
          </thead>
          <tbody>
            {found.rules.map((rule, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a rule may stand there twice
              <tr key={index} data-idle={rule.pairs === 0 || undefined}>
                <td className={`mono ${classes.ruleCell}`}>{rule.rule}</td>
                <td className={`num ${classes.ruleCell}`}>{formatCount(rule.labels)}</td>
                <td className={`num ${classes.ruleCell}`}>
                  {rule.labels === 0 ? t("home.tried.idle") : formatCount(rule.pairs)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p>
        {found.left_count === 0
          ? t("home.tried.allPaired")
          : t("home.tried.left", { count: found.left_count, total: formatCount(found.left_count) })}
        {found.inside > 0 && `, ${t("home.tried.inside", { total: formatCount(found.inside) })}`}
      </p>
      {found.left.length > 0 && (
        <ul className={classes.left}>
          {found.left.slice(0, SHOWN_LEFT).map((call) => (
            <li key={`${call.side}/${call.name}`}>
              <MiddleName name={call.name} />
              <UnmatchedChip cause={call.leftover} side={call.side} />
            </li>
          ))}
        </ul>
      )}
      {found.left_count > SHOWN_LEFT && (
        <p className="dim">
          {t("home.tried.shown", { shown: formatCount(SHOWN_LEFT), total: formatCount(found.left_count) })}
        </p>
      )}
    </div>
  );
}
