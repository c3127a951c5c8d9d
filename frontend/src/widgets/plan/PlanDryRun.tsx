import { Button, Checkbox, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Sides, useTryPlan } from "../../api/comparison/plans";
import type { ComparisonOptions, PlanTrial as Found, JoinedSide, TrialTensor } from "../../api/types";
import { partsText, ranksText, sortWays, type Way } from "../../base/comparison/plan";
import { SIDES, type Side } from "../../base/comparison/sides";
import { formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../basic/MiddleName";
import { ProblemList } from "../basic/Problems";
import { Failure } from "../basic/States";
import { WaySelect } from "./PlanDimensions";
import classes from "./PlanEditor.module.css";

interface PlanTrialProps {
  sides: Sides;
  options: ComparisonOptions;
  plan: string;
  /** Sets how one tensor is joined; null if the plan cannot be changed here. */
  onWay: ((name: string, way: Way) => void) | null;
}

/** What the plan makes of the first step and unit, tensor by tensor; nothing is compared. */
export function PlanDryRun({ sides, options, plan, onWay }: PlanTrialProps) {
  const { t } = useTranslation();
  const trial = useTryPlan(sides);
  const [q, setQ] = useState("");
  const [copies, setCopies] = useState(false);
  const start = (every: boolean) => trial.mutate({ plan, options, unit: null, q: q.trim(), copies: every });
  const found = trial.data;
  const stale = found !== undefined && trial.variables.plan !== plan && !trial.isPending;
  useEffect(() => {
    if (stale) start(copies);
  });
  return (
    <>
      <div className={classes.row}>
        <Button
          variant="default"
          size="compact-xs"
          loading={trial.isPending}
          onClick={() => start(copies)}
          data-testid="plan-try"
        >
          {t("plan.try")}
        </Button>
        <TextInput
          aria-label={t("plan.search")}
          placeholder={t("plan.search")}
          className={classes.pattern}
          value={q}
          onChange={(event) => setQ(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            start(copies);
          }}
          data-testid="plan-search"
        />
        <Checkbox
          label={t("plan.copies")}
          checked={copies}
          onChange={(event) => {
            setCopies(event.currentTarget.checked);
            if (found) start(event.currentTarget.checked);
          }}
        />
      </div>
      {trial.error && <Failure problem={trial.error} />}
      {found && <Tried found={found} onWay={onWay} />}
    </>
  );
}

function Tried({ found, onWay }: { found: Found; onWay: PlanTrialProps["onWay"] }) {
  const { t } = useTranslation();
  const { unit, tensors } = found;
  return (
    <div data-testid="plan-tried">
      <p className={classes.tried}>
        {t("unit.step")} {unit.step} · {t("unit.rank")} {unit.rank}
        {SIDES.map((side) => (
          <span key={side}>
            {t(`comparison.${side}`)} <strong className="num">{ranksText(unit[side].ranks)}</strong>{" "}
            <span className="dim">{ways(unit[side], (way, values) => t(`plan.ways.${way}`, values))}</span>
          </span>
        ))}
      </p>
      {found.problems.length > 0 && <ProblemList problems={found.problems} />}
      {tensors.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        // biome-ignore lint/a11y/useSemanticElements: a box that scrolls
        <div className={classes.tensors} role="group" tabIndex={0} aria-label={t("plan.tensors")}>
          <table className={classes.table}>
            <thead>
              <tr>
                <th scope="col">{t("plan.tensor")}</th>
                <th scope="col">{t("plan.parts")}</th>
                <th scope="col">{t("plan.whole")}</th>
                <th scope="col">{t("plan.way")}</th>
              </tr>
            </thead>
            <tbody>
              {tensors.map((tensor) => (
                <TensorRow key={`${tensor.side} ${tensor.name}`} tensor={tensor} onWay={onWay} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p className="dim">
        {t("plan.listed", { shown: formatCount(tensors.length), total: formatCount(found.tensor_count) })}
      </p>
    </div>
  );
}

interface TensorRowProps {
  tensor: TrialTensor;
  onWay: PlanTrialProps["onWay"];
}

function TensorRow({ tensor, onWay }: TensorRowProps) {
  const { t } = useTranslation();
  const joined = tensor.way === "join" && tensor.dimension !== null && tensor.shape !== null;
  const way = joined ? (tensor.dimension as number) : (tensor.way as Way | "odd");
  const word = typeof way === "number" ? t("plan.wayOf.dimension", { dimension: way }) : t(`plan.wayOf.${way}`);
  return (
    <tr data-testid="plan-tensor">
      <td>
        <span className="dim">{t(`comparison.${tensor.side as Side}`)}</span> <MiddleName name={tensor.name} />
      </td>
      <td className="mono">
        {joined ? partsText(tensor.shape ?? [], tensor.dimension ?? 0, tensor.sizes, tensor.members) : "–"}
      </td>
      <td className="mono">{tensor.shape === null ? "–" : `[${tensor.shape.join(", ")}]`}</td>
      <td>
        {onWay ? (
          <WaySelect
            label={tensor.name}
            way={way}
            dimensions={tensor.shape?.length ?? 0}
            onChange={(chosen) => onWay(tensor.name, chosen)}
          />
        ) : (
          word
        )}
      </td>
    </tr>
  );
}

type SayWay = (way: "copy", values: { total: string; dimension: number | string }) => string;

function ways(side: JoinedSide, say: SayWay): string {
  return [side.shards, side.context, side.replicas]
    .flatMap((counts) => sortWays(counts))
    .map(({ way, dimension, count }) => say(way as "copy", { total: formatCount(count), dimension: dimension ?? "" }))
    .join(" · ");
}
