import type { Unit } from "../../api/records";
import { useRun } from "../../api/trends";
import { useTranslation } from "../../texts/useTranslation";
import { Notes } from "../../widgets/basic/Problems";
import classes from "./RunNotes.module.css";

const GROUPS = ["versions", "seeds", "numerics", "environment", "settings"] as const;

/** How the shown rank was run, if its dump says so. */
export function RunNotes({ id, unit }: { id: string; unit: Unit }) {
  const { t } = useTranslation();
  const run = useRun(id, unit).data?.run;
  if (!run) return null;
  return (
    <Notes label={t("dump.run.title")} warn={false} testId="run">
      <dl className={classes.run} data-testid="run-list">
        {run.devices.length > 0 && (
          <div>
            <dt>{t("dump.run.devices")}</dt>
            <dd className="mono">{run.devices.join(", ")}</dd>
          </div>
        )}
        {GROUPS.filter((group) => Object.values(run[group]).some((value) => value !== "")).map((group) => (
          <div key={group}>
            <dt>{t(`dump.run.${group}`)}</dt>
            {Object.entries(run[group])
              .filter(([, value]) => value !== "")
              .map(([name, value]) => (
                <dd key={name} className="mono">
                  <span className="dim">{name}</span> {value}
                </dd>
              ))}
          </div>
        ))}
      </dl>
    </Notes>
  );
}
