import { useDumpTrends } from "../../../api/trends";
import type { StepRange, ValueRow } from "../../../api/types";
import { formatReal } from "../../../base/numbers/format";
import { drawLine, findRange, formatSpan } from "../../../base/numbers/trendLines";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import { useStatisticChoice } from "../../../widgets/tensors/TrendControls";
import classes from "../Trends.module.css";
import { ValueTable } from "../ValueTable";

const WIDTH = 320;
const HEIGHT = 72;

/** One call over the steps and ranks of a dump: a line per rank, the numbers below it. */
export function NodeTrend({ id, name }: { id: string; name: string }) {
  const { t } = useTranslation();
  const { statistic, part, word, choices } = useStatisticChoice();
  const found = useDumpTrends(id, { statistic, part, name });
  const page = found.data?.pages[0];
  const rows = found.data?.pages.flatMap((one) => one.items) ?? [];
  const bad = rows
    .flatMap((row) => row.first_bad ?? [])
    .sort((one, other) => one.step - other.step || one.rank - other.rank)[0];
  return (
    <section className={classes.node} aria-label={t("trends.node")} data-testid="node-trend">
      <div className={classes.controls}>
        <h3>{t("trends.node")}</h3>
        {choices}
      </div>
      {found.error && <Failure problem={found.error} onRetry={() => void found.refetch()} />}
      {bad && <p className={classes.bad}>{t("trends.firstBadAt", bad)}</p>}
      {page && rows.some((row) => row.cells.some((cell) => cell.value !== null)) ? (
        <>
          {page.steps.length > 1 && <Lines steps={page.steps} rows={rows} word={word} />}
          <ValueTable
            label={t("trends.node")}
            steps={page.steps}
            rows={rows}
            word={word}
            ranked={page.ranks.length > 1}
            nameless
          />
        </>
      ) : (
        page && <p className="dim">{t("trends.none")}</p>
      )}
    </section>
  );
}

function Lines({ steps, rows, word }: { steps: readonly StepRange[]; rows: readonly ValueRow[]; word: string }) {
  const { t } = useTranslation();
  const series = rows.map((row) => {
    const cells = new Map(row.cells.map((cell) => [cell.bucket, cell.value]));
    return { rank: row.rank, values: steps.map((_, bucket) => cells.get(bucket) ?? null) };
  });
  const [low, high] = findRange(series.flatMap(({ values }) => values));
  const span = { first: steps[0]?.first ?? 0, last: steps.at(-1)?.last ?? 0 };
  const range = { low: formatReal(low, 3), high: formatReal(high, 3) };
  const x = (share: number) => 4 + share * (WIDTH - 8);
  const y = (share: number) => HEIGHT - 6 - share * (HEIGHT - 12);
  const label = t("trends.lines", { statistic: word, steps: formatSpan(span), ...range });
  return (
    <figure className={classes.figure}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label} className={classes.lines}>
        <title>{label}</title>
        {series.map(({ rank, values }, index) => {
          const { stretches, breaks } = drawLine(values, low, high);
          const end = stretches.at(-1)?.at(-1);
          return (
            <g key={rank} data-series={index % 6}>
              {stretches.map((points) => (
                <polyline
                  key={points[0]?.x}
                  points={points.map((point) => `${x(point.x)},${y(point.y)}`).join(" ")}
                  fill="none"
                />
              ))}
              {stretches.flat().map((point) => (
                <circle key={point.x} cx={x(point.x)} cy={y(point.y)} r={2} />
              ))}
              {series.length > 1 && end && (
                <text x={x(end.x) - 3} y={Math.max(10, y(end.y) - 4)} textAnchor="end">
                  {rank}
                </text>
              )}
              {breaks.map((column) => (
                <text
                  className={classes.break}
                  key={column}
                  x={x(column / Math.max(1, values.length - 1))}
                  y={12}
                  textAnchor="middle"
                >
                  ✖
                </text>
              ))}
            </g>
          );
        })}
      </svg>
      <figcaption className="dim num">
        <span>
          {t("unit.step")} {formatSpan(span)}
        </span>
        <span>
          {range.low} … {range.high}
        </span>
      </figcaption>
    </figure>
  );
}
