import { useDump } from "../../../api/records";
import { useTranslation } from "../../../texts/useTranslation";
import { Link } from "../../../widgets/basic/navigation";
import { Notes, ProblemList } from "../../../widgets/basic/Problems";
import { describeProblem } from "../../../widgets/basic/States";
import { DumpFacts } from "../compare/DumpFacts";
import classes from "../HomeView.module.css";
import { SideButtons } from "../lists/SideButtons";
import type { SidePicking } from "../useSides";

/** The state of files that arrived: being read, a dump, or not a dump. */
export function ReceivedDump({
  id,
  name,
  waits,
  picked,
  onPick,
}: { id: string; name: string; waits: string } & SidePicking) {
  const { t } = useTranslation();
  const dump = useDump(id).data;
  const refused = (dump?.problems ?? []).filter(({ kind }) => kind === "refused");
  const leftOut = refused.length > 0 && (
    <Notes label={t("home.refused", { count: refused.length })} testId="refused">
      <ProblemList problems={refused} />
    </Notes>
  );
  if (dump?.status === "ready")
    return (
      <span className={classes.received}>
        <Link to={`dumps/${encodeURIComponent(id)}`}>{t("home.uploadRead", { name })}</Link>
        {leftOut}
        <SideButtons dump={dump} picked={picked} onPick={onPick} />
        <DumpFacts id={id} />
      </span>
    );
  if (dump?.status !== "failed") return <span>{waits}</span>;
  const { detail, hint } = describeProblem(dump.error);
  return (
    <span className={classes.failed}>
      {t("home.uploadUnreadable", { name })}: {detail}
      {hint && (
        <div>
          <strong>{t("app.remedy")}:</strong> {hint}
        </div>
      )}
      {leftOut}
    </span>
  );
}
