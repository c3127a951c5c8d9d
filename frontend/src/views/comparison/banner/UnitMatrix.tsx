import type { Summary } from "../../../api/types";
import { unitMark, verdictLabel } from "../../../base/comparison/verdicts";
import { useTranslation } from "../../../texts/useTranslation";
import { Notes } from "../../../widgets/basic/Problems";
import { useResult } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./UnitMatrix.module.css";

const MOST_CELLS = 2000;

/** Steps down, ranks across, the worst verdict in each cell; a click goes there. */
export function UnitMatrix({ summary }: { summary: Summary }) {
  const { t } = useTranslation();
  const { steps, ranks, origins } = useResult();
  const { unit, update } = useSelection();
  const units = new Map(summary.units.map((one) => [`${one.step}/${one.rank}`, one]));
  if (summary.units.length < 2 || steps.length * ranks.length > MOST_CELLS) return null;
  return (
    <Notes
      label={`${t("comparison.steps", { count: steps.length })} × ${t("comparison.ranks", { count: ranks.length })}`}
      warn={false}
    >
      <table className={classes.table} aria-label={t("comparison.units")} data-testid="units">
        <thead>
          <tr>
            <th scope="col" className="dim">
              {t("unit.step")} \ {t("unit.rank")}
            </th>
            {ranks.map((rank) => (
              <th scope="col" key={rank}>
                {rank}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={step}>
              <th scope="row">{step}</th>
              {ranks.map((rank) => {
                const one = units.get(`${step}/${rank}`);
                if (!one) return <td key={rank} />;
                const { cls, glyph } = unitMark(one, origins);
                const said = t("comparison.unitCell", {
                  step,
                  rank,
                  verdict: verdictLabel(one.verdict),
                  no: one.no,
                  origins: one.origins,
                });
                const label = cls === "repeats" ? `${said}. ${t("comparison.unitRepeats")}` : said;
                return (
                  <td key={rank}>
                    <button
                      type="button"
                      className={`plain ${classes.cell}`}
                      data-cls={cls}
                      aria-label={label}
                      aria-current={(step === unit?.step && rank === unit.rank) || undefined}
                      title={label}
                      onClick={() => update({ step, rank })}
                    >
                      {glyph}
                    </button>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Notes>
  );
}
