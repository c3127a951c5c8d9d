import { useQuery } from "@tanstack/react-query";
import { fetchNodes } from "../../../api/comparison/nodes";
import type { Origin, Summary } from "../../../api/types";
import { NO_FILTER } from "../../../base/address/address";
import { formatCount, formatError, formatReal } from "../../../base/numbers/format";
import { say, sayProblem } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Banner.module.css";

/** Dump settings that make the two sides hold different data: listed in full, not counted. */
const APART: readonly string[] = ["setting.framework", "setting.task", "setting.level", "setting.dtypes"];

/** Kinds of problems that took something away from the answer. */
const DAMAGE: readonly string[] = [
  "truncated",
  "damaged",
  "empty",
  "missing",
  "unreadable",
  "refused",
  "no_data",
  "limit",
  "over_budget",
  "capture_losses",
];
const SHOWN = 6;

/** Different dump settings and damaged files: the user must know these before reading the verdict. growing: a record that is still
 * being written is not damaged. */
export function Warnings({ summary, growing }: { summary: Summary; growing: boolean }) {
  const { t } = useTranslation();
  const apart = summary.settings_said.flatMap((said, index) =>
    APART.includes(said.id) ? [say(summary.settings[index] ?? "", [said])] : [],
  );
  const damaged = summary.problems.filter(
    ({ kind, loc }) => DAMAGE.includes(kind) && !(growing && loc.endsWith("dump.journal")),
  );
  const [first] = damaged;
  return (
    <>
      {apart.map((text) => (
        <p key={text} className={`${classes.reason} ${classes.warned}`} data-testid="sides-apart">
          <strong>{t("comparison.sidesApart")}</strong> {text}
        </p>
      ))}
      {first && (
        <p className={`${classes.reason} ${classes.warned}`} data-testid="damage">
          <strong>{t("comparison.damaged")}</strong> {first.loc && <span className="mono">{first.loc}: </span>}
          {sayProblem(first) ?? first.message}
          {damaged.length > 1 && ` ${t("comparison.damagedMore", { count: damaged.length - 1 })}`}{" "}
          <span className="dim">{t("comparison.damagedRest")}</span>
        </p>
      )}
    </>
  );
}

/** Calls whose input data already differs: no operator is at fault, and all later calls differ too. */
export function DifferingInputs({ origins }: { origins: readonly Origin[] }) {
  const { t } = useTranslation();
  const { showOrigin } = useSelection();
  const inputs = origins.filter(({ kind }) => kind === "input");
  if (inputs.length === 0) return null;
  return (
    <p className={`${classes.reason} ${classes.warned}`} data-testid="inputs-differ">
      <strong>{t("comparison.inputsDiffer")}</strong> {t("comparison.inputsAdvice")}{" "}
      {inputs.slice(0, SHOWN).map((origin) => (
        <button
          key={`${origin.step}/${origin.rank}/${origin.node}`}
          type="button"
          className={`plain ${classes.input}`}
          onClick={() => showOrigin(origin)}
        >
          <MiddleName name={origin.node} tail={30} />
        </button>
      ))}
      {inputs.length > SHOWN && <span className="dim">+{formatCount(inputs.length - SHOWN)}</span>}
    </p>
  );
}

/** For two runs that agree: the call with the largest error, and its floor. */
export function LargestError({ id }: { id: string }) {
  const { t } = useTranslation();
  const { unit, select } = useSelection();
  const found = useQuery({
    queryKey: ["comparisons", "data", id, "largest", unit],
    queryFn: () =>
      unit === null ? null : fetchNodes(id, unit, { filter: NO_FILTER, query: "", sort: "-out_score" }, null, 1),
    enabled: unit !== null,
  });
  const row = found.data?.items[0];
  if (!row || row.out_score === null) return null;
  return (
    <p className={classes.reason} data-testid="largest">
      {row.out_score === 0 ? (
        t("comparison.largestNone")
      ) : (
        <>
          {t("comparison.largest", {
            error: formatError(row.out_error, row.out_score),
            score: formatReal(row.out_score, 2),
          })}{" "}
          <button type="button" className={`plain ${classes.input}`} onClick={() => select(row.address)}>
            <MiddleName name={row.name} tail={30} />
          </button>
        </>
      )}
    </p>
  );
}
