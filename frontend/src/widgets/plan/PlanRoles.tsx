import { NativeSelect, TextInput } from "@mantine/core";
import { type PlanLayout, ranksOf, swapRanks } from "../../base/comparison/plan";
import { SIDES, type Side } from "../../base/comparison/sides";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./PlanEditor.module.css";

/** Units whose ranks are drawn; the rest is in the text. */
const SHOWN = 16;

/** Every place of the plan with the rank that has it; another one picked there changes places with it. */
export function PlanRoles({ layout, onChange }: { layout: PlanLayout; onChange: (layout: PlanLayout) => void }) {
  const { t } = useTranslation();
  const rest = layout.units.length - SHOWN;
  return (
    <>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">{t("unit.rank")}</th>
            <th scope="col">{t("plan.target")}</th>
            <th scope="col">{t("plan.golden")}</th>
          </tr>
        </thead>
        <tbody>
          {layout.units.slice(0, SHOWN).map((unit, place) => (
            <tr key={unit.rank}>
              <th scope="row" className="num">
                {unit.rank}
              </th>
              {SIDES.map((side) => (
                <td key={side}>
                  <SideRoles layout={layout} unit={place} side={side} onChange={onChange} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rest > 0 && <p className="dim">… +{rest}</p>}
    </>
  );
}

interface SideRolesProps {
  layout: PlanLayout;
  unit: number;
  side: Side;
  onChange: (layout: PlanLayout) => void;
}

function SideRoles({ layout, unit, side, onChange }: SideRolesProps) {
  const { t } = useTranslation();
  const own = layout.units[unit]?.[side];
  if (!own) return null;
  const all = ranksOf(layout, side).sort((one, other) => one - other);
  const offsets = (text: string) => {
    const numbers = text.split(/[\s,]+/).filter((word) => word !== "");
    if (text === own.offsets.join(", ")) return;
    const units = layout.units.map((one, place) =>
      place === unit ? { ...one, [side]: { ...own, offsets: numbers.map((word) => Number(word)) } } : one,
    );
    onChange({ ...layout, units });
  };
  return (
    <>
      {own.ranks.map((replica, batch) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the place is what a replica is
        <div key={batch} className={classes.replica}>
          {replica.flatMap((stage, pp) =>
            stage.map((rank, tp) => (
              <NativeSelect
                key={rank}
                size="xs"
                label={role(own, batch, pp, tp)}
                aria-label={`${t(`comparison.${side}`)} ${role(own, batch, pp, tp)}`}
                data={all.map(String)}
                value={String(rank)}
                onChange={(event) => onChange(swapRanks(layout, side, rank, Number(event.currentTarget.value)))}
                data-testid={`role-${side}`}
              />
            )),
          )}
        </div>
      ))}
      {own.offsets.length > 1 && (
        <TextInput
          key={own.offsets.join()}
          label={t("plan.offsetsOf")}
          defaultValue={own.offsets.join(", ")}
          onBlur={(event) => offsets(event.currentTarget.value)}
          data-testid={`offsets-${side}`}
        />
      )}
    </>
  );
}

/** Which place this is, as launchers number it: only of degrees above 1. */
function role(side: PlanLayout["units"][number]["target"], replica: number, stage: number, shard: number): string {
  const batches = side.ranks.length / side.context;
  const words = [
    batches > 1 ? `DP ${Math.floor(replica / side.context)}` : "",
    side.context > 1 ? `CP ${replica % side.context}` : "",
    side.experts > 1 ? `EP ${replica % side.experts}` : "",
    (side.ranks[0]?.length ?? 1) > 1 ? `PP ${stage}` : "",
    (side.ranks[0]?.[0]?.length ?? 1) > 1 ? `TP ${shard}` : "",
  ].filter((word) => word !== "");
  return words.join(" · ") || "–";
}
