import { barLength, exactReal, formatError, isFiniteReal, type Real } from "../../base/numbers/format";
import { translate } from "../../texts/translation";
import classes from "./ErrorBar.module.css";

interface ErrorBarProps {
  score: Real;
  error: Real;
  cls: string;
  label: string;
}

/** The number in a cell in full, with its unit. */
function errorTitle(error: Real, score: Real): string {
  const floors = exactReal(score);
  if (score === "inf" && !error) return translate("list.noFloor");
  if (error !== null && error !== undefined) return translate("list.score", { error: exactReal(error), score: floors });
  return score === null ? floors : translate("list.scoreOnly", { score: floors });
}

/** An error as the list of calls shows it: the figure, and a bar of the same quantity, coloured above the floor. */
export function ErrorBar({ score, error, cls, label }: ErrorBarProps) {
  const above = score !== null && (!isFiniteReal(score) || Number(score) > 1);
  // A module around an origin, or a harmless output after a differing input, still shows what is above the floor.
  const colour = ["exact", "benign", "unknown", "contains"].includes(cls) ? "propagated" : cls;
  return (
    <span className={classes.bar} title={`${label}: ${errorTitle(error, score)}`}>
      <span
        className={classes.fill}
        data-cls={above ? colour : "benign"}
        style={{ width: `${barLength(error, score) * 100}%` }}
      />
      <span className={classes.value}>{formatError(error, score)}</span>
    </span>
  );
}
