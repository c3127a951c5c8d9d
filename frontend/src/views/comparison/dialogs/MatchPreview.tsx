import { useNode } from "../../../api/comparison/nodes";
import type { Unit } from "../../../api/records";
import type { NodeDetail } from "../../../api/types";
import { describeType, describeValue } from "../../../base/comparison/leaves";
import { type Fit, previewRows, type Record } from "../../../base/comparison/matchPreview";
import type { Side } from "../../../base/comparison/sides";
import { ABSENT, formatReal } from "../../../base/numbers/format";
import { isText } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import classes from "./Matching.module.css";

const SHOWN = 12;
const MARKS: { [fit in Fit]: string } = { same: "=", dtype: "≈", shape: "≠", alone: "±" };

interface MatchPreviewProps {
  comparison: string;
  unit: Unit;
  own: Side;
  node: NodeDetail;
  candidate: string;
}

/** The records that would be compared if the candidate became the partner, before anything is stored. */
export function MatchPreview({ comparison, unit, own, node, candidate }: MatchPreviewProps) {
  const { t } = useTranslation();
  const other = useNode(comparison, unit, candidate);
  if (other.error) return <Failure problem={other.error} onRetry={() => void other.refetch()} />;
  if (!other.data || other.data.address !== candidate) return null;
  const both = own === "target" ? [node, other.data] : [other.data, node];
  const rows = previewRows(
    (both[0]?.items ?? []).flatMap((pair): Record[] => (pair.target_leaf ? [pair.target_leaf] : [])),
    (both[1]?.items ?? []).flatMap((pair): Record[] => (pair.golden_leaf ? [pair.golden_leaf] : [])),
  );
  const fits = rows.filter((row) => row.fit === "same" || row.fit === "dtype").length;
  return (
    <section className={classes.preview} aria-label={t("matching.preview")} aria-live="polite" data-testid="preview">
      <p className={classes.lead}>{t("matching.fits", { count: rows.length, fits, total: rows.length })}</p>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">{t("evidence.item")}</th>
            <th scope="col">{t("comparison.target")}</th>
            <th scope="col">{t("comparison.golden")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, SHOWN).map((row) => (
            <tr key={`${row.role}.${row.path}`} data-fit={row.fit}>
              <th scope="row">
                <span aria-hidden="true">{MARKS[row.fit]} </span>
                <span className="sr">{t(`matching.fit.${row.fit}`)} </span>
                {isText(`roles.${row.role}`) ? t(`roles.${row.role as "input"}`) : row.role} {row.path}
              </th>
              <td>{described(row.target)}</td>
              <td>{described(row.golden)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > SHOWN && <p className="dim">{t("matching.more", { total: rows.length - SHOWN })}</p>}
    </section>
  );
}

function described(leaf: Record | null): string {
  if (!leaf) return ABSENT;
  const type = describeType(leaf);
  if (leaf.norm !== null) return `${type} · Norm ${formatReal(leaf.norm)}`;
  if (leaf.shape !== null) return type;
  return `${type} ${describeValue(leaf.value)}`;
}
