import type { Summary } from "../../../api/types";
import { formatCount, formatReal } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Notes } from "../../../widgets/basic/Problems";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./GoldenOff.module.css";

/** Where the golden is wrong, by the absolute reference. */
export function GoldenOff({ summary }: { summary: Summary }) {
  const { t } = useTranslation();
  const { update } = useSelection();
  const { reference } = summary;
  if (reference === null) return null;
  const [first, ...rest] = reference.golden_off;
  const line = (one: (typeof reference.golden_off)[number]) => (
    <>
      <button
        type="button"
        className={`plain ${classes.node}`}
        onClick={() => update({ step: one.step, rank: one.rank, node: one.node })}
        data-testid="golden-off"
      >
        <MiddleName name={one.node} tail={36} />
      </button>
      <span>
        {t("reference.times", { ratio: `${formatReal(one.ratio, 3)}×` })}{" "}
        <span className="dim">
          {t("reference.distances", {
            target: formatReal(one.target, 3),
            golden: formatReal(one.golden, 3),
            measure: t(`reference.measures.${one.measure}`),
          })}
        </span>
      </span>
    </>
  );
  return (
    <div className={classes.off} data-testid="reference">
      {first ? (
        <>
          <strong>{t("reference.goldenOff")}</strong>
          {line(first)}
          {rest.length > 0 && (
            <Notes label={t("reference.more", { count: rest.length })} warn={false}>
              <ul className={classes.list}>
                {rest.map((one) => (
                  <li key={`${one.step}/${one.rank}/${one.pair}`}>{line(one)}</li>
                ))}
              </ul>
            </Notes>
          )}
        </>
      ) : (
        <span className="dim">{t("reference.goldenWell")}</span>
      )}
      <span className="dim" title={reference.side.path}>
        {t("reference.counts", {
          target: formatCount(reference.target_farther),
          golden: formatCount(reference.golden_farther),
          alike: formatCount(reference.alike),
          none: formatCount(reference.not_measured),
        })}
      </span>
    </div>
  );
}
