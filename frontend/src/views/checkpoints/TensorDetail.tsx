import { CloseButton } from "@mantine/core";
import { Fragment } from "react";
import { useCheckpointTensor } from "../../api/checkpoints";
import type { CheckpointTensor } from "../../api/types";
import { formatCount, formatReal, formatShare } from "../../base/numbers/format";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../../widgets/basic/CopyButton";
import { Failure, Loading } from "../../widgets/basic/States";
import classes from "./Checkpoints.module.css";
import { formText, indexText, shapeText } from "./tensorWords";

interface TensorDetailProps {
  id: string;
  number: number;
  onClose: () => void;
}

/** One tensor in full: both sides, errors, where it differs most, and how large the differences are. */
export function TensorDetail({ id, number, onClose }: TensorDetailProps) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useCheckpointTensor(id, number);
  return (
    <section className={`panel ${classes.detail}`} aria-label={t("checkpoints.tensor")} data-testid="tensor-detail">
      <div className={classes.detailHead}>
        <h2 className="mono">{data?.name}</h2>
        {data && <CopyButton text={data.name} label={t("checkpoints.copy")} />}
        <CloseButton size="sm" aria-label={t("app.close")} onClick={onClose} />
      </div>
      {isPending && <Loading />}
      {error && <Failure problem={error} onRetry={() => void refetch()} />}
      {data && <Facts tensor={data} />}
    </section>
  );
}

type Fact =
  | "state"
  | "match"
  | "layout"
  | "golden"
  | "dtype"
  | "shape"
  | "changed"
  | "largest"
  | "place"
  | "values"
  | "relative"
  | "maxRelative"
  | "cosine"
  | "ulp"
  | "nonfinite"
  | "targetFile"
  | "goldenFile";

function Facts({ tensor }: { tensor: CheckpointTensor }) {
  const { t } = useTranslation();
  const compared = tensor.elements >= 0;
  const rows: [Fact, string][] = [
    ["state", t(`checkpoints.states.${tensor.state}`)],
    ["match", t(`checkpoints.matches.${tensor.match}`)],
  ];
  if (tensor.form !== null) rows.push(["layout", t(`checkpoints.forms.${tensor.form}`)]);
  if (tensor.golden !== "" && tensor.golden !== tensor.name) rows.push(["golden", tensor.golden]);
  rows.push(["dtype", formText(tensor)], ["shape", shapeText(tensor)]);
  if (compared) {
    rows.push(
      ["changed", `${formatCount(tensor.unequal)} / ${formatCount(tensor.elements)} (${formatShare(tensor.share)})`],
      ["largest", formatReal(tensor.max_abs)],
      ["place", indexText(tensor.index)],
      ["values", `${formatReal(tensor.target_value)} / ${formatReal(tensor.golden_value)}`],
      ["relative", formatReal(tensor.rel_l2)],
      ["maxRelative", formatReal(tensor.max_rel)],
      ["cosine", formatReal(tensor.cosine)],
      ["ulp", formatReal(tensor.max_ulp)],
      ["nonfinite", `${formatCount(tensor.nonfinite_target)} / ${formatCount(tensor.nonfinite_golden)}`],
    );
  }
  if (tensor.target_source) rows.push(["targetFile", tensor.target_source]);
  if (tensor.golden_source) rows.push(["goldenFile", tensor.golden_source]);
  return (
    <>
      {tensor.note && <p className={classes.words}>{say(tensor.note, tensor.note_said)}</p>}
      <dl className={classes.facts}>
        {rows.map(([key, value]) => (
          <Fragment key={key}>
            <dt>{t(`checkpoints.facts.${key}`)}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </Fragment>
        ))}
      </dl>
      {tensor.histogram.length > 0 && <Histogram counts={tensor.histogram} />}
    </>
  );
}

/** Lowest decade that has a bin of its own; before it stand the bins of equal elements and of smaller differences. */
const FIRST_DECADE = -16;

/** Elements by the size of their difference; a bar's length is the logarithm of its count, so that one element shows. */
function Histogram({ counts }: { counts: readonly number[] }) {
  const { t } = useTranslation();
  const used = counts.flatMap((count, place) => (count > 0 && place > 0 ? [place] : []));
  const first = Math.min(...used);
  const last = Math.max(...used);
  const most = Math.log1p(Math.max(...counts));
  const label = (place: number) =>
    place === 0 ? "0" : place === 1 ? `< 1e${FIRST_DECADE}` : `≥ 1e${FIRST_DECADE + place - 2}`;
  const shown = counts
    .map((count, place) => ({ count, place }))
    .filter(({ count, place }) => (place === 0 ? count > 0 : place >= first && place <= last));
  return (
    <>
      <h3 className={classes.subtitle}>{t("checkpoints.histogram")}</h3>
      <table className={classes.histogram}>
        <tbody>
          {shown.map(({ count, place }) => (
            <tr key={place}>
              <th scope="row" className="num">
                {label(place)}
              </th>
              <td>
                {count > 0 && (
                  <span className={classes.bar} style={{ width: `${(Math.log1p(count) / most) * 100}%` }} />
                )}
              </td>
              <td className="num">{formatCount(count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
