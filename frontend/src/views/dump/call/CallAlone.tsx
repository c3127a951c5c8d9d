import { useState } from "react";
import { useCallAlone } from "../../../api/comparison/prechecks";
import type { Unit } from "../../../api/records";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import { PrecheckLine } from "../../../widgets/marks/PrecheckMark";
import { PrecheckWays } from "../../../widgets/marks/PrecheckWays";
import ways from "../../../widgets/marks/PrecheckWays.module.css";
import classes from "../DumpView.module.css";

/** Is this operator itself wrong? The pre-check result of the call, or how to get one. */
export function CallAlone({ id, unit, name }: { id: string; unit: Unit; name: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const { data, error } = useCallAlone(id, unit, name);
  if (error) return <Failure problem={error} />;
  if (!data) return null;
  return (
    <section className={classes.alone} aria-label={t("alone.title")} data-testid="alone">
      {data.checked > 0 ? (
        <>
          <h3>
            {t("alone.title")} <span className="dim">{t("alone.question")}</span>
          </h3>
          {data.result ? <PrecheckLine told={data.result} /> : <p className="dim">{t("alone.nothingSaidHere")}</p>}
        </>
      ) : (
        <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary className={ways.summary} data-testid="alone-how">
            <strong>{t("alone.title")}</strong> <span className="dim">{t("alone.unchecked")}</span>{" "}
            <code>dumpscope precheck</code>
          </summary>
          {open && (
            <PrecheckWays dump={id} name="dump" where={t("alone.whereHere")} elsewhere={t("alone.elsewhereHere")} />
          )}
        </details>
      )}
    </section>
  );
}
