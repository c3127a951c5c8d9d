import { Button } from "@mantine/core";
import { planUrl } from "../../../api/comparison/plans";
import { usePlan } from "../../../api/comparison/summary";
import type { JoinedSide, JoinedUnit, Summary } from "../../../api/types";
import { ranksText, sortWays } from "../../../base/comparison/plan";
import { IN_FILE } from "../../../base/inFile";
import { formatCount } from "../../../base/numbers/format";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { CopyButton } from "../../../widgets/basic/CopyButton";
import { Notes } from "../../../widgets/basic/Problems";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./PlanNotes.module.css";

const SHOWN = 40;

interface PlanNotesProps {
  id: string;
  summary: Summary;
}

/** Which ranks were joined with which, why, and how, and the way to join them otherwise. */
export function PlanNotes({ id, summary }: PlanNotesProps) {
  const { t } = useTranslation();
  const plan = usePlan(id);
  const { update } = useSelection();
  const edit = () => update({ dialog: "plan" });
  if (!plan.data) return null;
  const { joined } = plan.data;
  if (!joined) {
    const several = summary.target.ranks.length > 1 || summary.golden.ranks.length > 1;
    return several && !IN_FILE ? (
      <button type="button" className={`plain ${classes.join}`} onClick={edit} data-testid="plan-join">
        {t("plan.join")}
      </button>
    ) : null;
  }
  const odd = joined.units.some((unit) => [unit.target, unit.golden].some((side) => side.strays.length > 0));
  const rest = joined.unit_count - Math.min(SHOWN, joined.units.length);
  return (
    <Notes label={t("plan.joined", { count: joined.unit_count })} warn={odd} testId="plan">
      <div className={classes.panel} data-testid="plan-panel">
        {joined.reasons.length > 0 && (
          <ul className={classes.reasons}>
            {joined.reasons.map((reason, index) => {
              const said = joined.reasons_said[index];
              return <li key={reason}>{say(reason, said && [said])}</li>;
            })}
          </ul>
        )}
        <table className={classes.table} aria-label={t("plan.units")}>
          <thead>
            <tr>
              <th scope="col">
                {t("unit.step")} · {t("unit.rank")}
              </th>
              <th scope="col">{t("plan.target")}</th>
              <th scope="col">{t("plan.golden")}</th>
            </tr>
          </thead>
          <tbody>
            {joined.units.slice(0, SHOWN).map((unit) => (
              <UnitRow key={`${unit.step}/${unit.rank}`} unit={unit} />
            ))}
          </tbody>
        </table>
        {rest > 0 && <p className="dim">… +{rest}</p>}
        {!IN_FILE && (
          <div className={classes.actions}>
            <Button size="compact-xs" onClick={edit} data-testid="plan-edit">
              {t("plan.edit")}
            </Button>
            <Button size="compact-xs" variant="default" component="a" href={planUrl(id)} download>
              {t("plan.download")}
            </Button>
          </div>
        )}
        <details>
          <summary>{t("plan.yaml")}</summary>
          <pre className={`mono ${classes.yaml}`}>{joined.plan}</pre>
          <CopyButton text={joined.plan} label={t("plan.copy")} />
        </details>
      </div>
    </Notes>
  );
}

function UnitRow({ unit }: { unit: JoinedUnit }) {
  return (
    <tr>
      <th scope="row" className="num">
        {unit.step} · {unit.rank}
      </th>
      <td>
        <SideCell side={unit.target} />
      </td>
      <td>
        <SideCell side={unit.golden} />
      </td>
    </tr>
  );
}

/** The ranks of one side, and what became of their tensors. */
function SideCell({ side }: { side: JoinedSide }) {
  const { t } = useTranslation();
  const stages = side.offsets.length > 1;
  return (
    <>
      <strong className="num">{ranksText(side.ranks)}</strong>
      {stages && <div className="dim">{t("plan.offsets", { offsets: side.offsets.join(", ") })}</div>}
      <Ways counts={side.shards} label={t("plan.shards")} />
      <Ways counts={side.context} label={t("plan.context")} />
      <Ways counts={side.replicas} label={t("plan.replicas")} />
      {side.collectives > 0 && <div className="dim">{t("plan.collectives", { count: side.collectives })}</div>}
      {side.experts > 0 && <div className="dim">{t("plan.experts", { count: side.experts })}</div>}
      {side.own_data.length > 0 && <div>{t("plan.ownData", { ranks: side.own_data.join(", ") })}</div>}
      {side.strays.map((stray) => {
        const words = { ranks: stray.ranks.join(", "), items: stray.items, name: stray.item || stray.node };
        const key = stray.item === "" ? "extra" : stray.ranks.length > 0 ? "stray" : "differ";
        return (
          <div key={`${key} ${words.ranks}`} className={classes.stray} data-testid="plan-stray">
            {t(`plan.${key}`, words)}
          </div>
        );
      })}
    </>
  );
}

function Ways({ counts, label }: { counts: Readonly<Record<string, number>>; label: string }) {
  const { t } = useTranslation();
  const ways = sortWays(counts);
  if (ways.length === 0) return null;
  const said = ways.map(({ way, dimension, count }) =>
    t(`plan.ways.${way as "copy"}`, { total: formatCount(count), dimension: dimension ?? "" }),
  );
  return (
    <div className="dim">
      {label}: {said.join(" · ")}
    </div>
  );
}
