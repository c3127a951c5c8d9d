import type { Coverage } from "../../../api/types";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { Notes } from "../../../widgets/basic/Problems";
import classes from "./Banner.module.css";
import { Call } from "./Coverage";

/** How many items were judged, and on demand by what, and why the others were not. */
export function CoverageNotes({ coverage }: { coverage: Coverage | null }) {
  const { t } = useTranslation();
  if (!coverage || coverage.items === 0) return null;
  const groups = [...new Set(coverage.reasons.map(({ group }) => group))];
  const label = t("coverage.counts", { judged: formatCount(coverage.judged), items: formatCount(coverage.items) });
  return (
    <Notes label={label} warn={coverage.missing > 0} testId="coverage">
      <ul className={classes.settings} data-testid="coverage-reasons">
        {groups.map((group) => (
          <li key={group}>
            {t(`coverage.groups.${group}`)}: <span className="num">{formatCount(coverage[group])}</span>
            <ul>
              {coverage.reasons
                .filter((one) => one.group === group)
                .map((one) => (
                  <li key={one.reason}>
                    <span className="num">{formatCount(one.items)}</span>{" "}
                    {t(`coverage.reasons.${one.reason as "tensors"}`)}
                    {one.missing && <strong> ({t("coverage.missing")})</strong>}
                  </li>
                ))}
            </ul>
          </li>
        ))}
        {coverage.ends.map((end) => (
          <li key={`${end.side}/${end.step}/${end.rank}`}>
            {t("coverage.end", { side: t(`comparison.${end.side}`) })} <Call place={end} />
            {t("coverage.endFollows", { items: formatCount(end.items) })}
          </li>
        ))}
      </ul>
    </Notes>
  );
}
