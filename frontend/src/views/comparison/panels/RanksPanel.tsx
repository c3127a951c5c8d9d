import type { Collective, CollectivePart } from "../../../api/types";
import { exactReal } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { VerdictMark } from "../../../widgets/marks/Mark";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./RanksPanel.module.css";
import type { SectionProps } from "./sectionProps";

/** What every rank gave to a communication and took from it, each a link to the call there. */
export function RanksPanel({ node }: SectionProps) {
  const { t } = useTranslation();
  if (node.collectives.length === 0) return null;
  return (
    <section className={classes.section} aria-label={t("evidence.ranks.title")} data-testid="ranks">
      <h3 className={classes.title}>{t("evidence.ranks.title")}</h3>
      {node.collectives.map((one) => (
        <Ranks key={one.id} one={one} />
      ))}
    </section>
  );
}

function Ranks({ one }: { one: Collective }) {
  const { t } = useTranslation();
  const { unit, selected, update } = useSelection();
  const open = (part: CollectivePart) => update({ step: one.step, rank: part.rank, node: part.node });
  return (
    <table className={classes.table} data-testid="ranks-table" data-api={one.api}>
      <caption className={classes.caption}>
        <span className="mono">{one.api}</span> {t("evidence.ranks.group", { ranks: one.ranks.join(", ") })}
        {one.faulty && <strong> {t("evidence.ranks.faulty")}</strong>}
        {one.missing.length > 0 && <span> {t("evidence.ranks.missing", { ranks: one.missing.join(", ") })}</span>}
      </caption>
      <thead>
        <tr>
          <th scope="col">{t("unit.rank")}</th>
          <th scope="col">{t("roles.input")}</th>
          <th scope="col">{t("roles.output")}</th>
          <th scope="col">{t("evidence.ranks.call")}</th>
        </tr>
      </thead>
      <tbody>
        {one.parts.map((part) => (
          <tr key={`${part.rank}/${part.pair}/${part.gave === null}`} data-rank={part.rank}>
            <th scope="row" className="num">
              {part.rank}
            </th>
            <td>
              <Side half={part.gave} none={t("evidence.ranks.reads")} />
            </td>
            <td>
              <Side half={part.took} none={t("evidence.ranks.writes")} />
            </td>
            <td>
              <button
                type="button"
                className={`plain mono ${classes.link}`}
                aria-current={(part.rank === unit?.rank && part.node === selected) || undefined}
                onClick={() => open(part)}
              >
                {part.node}
              </button>
            </td>
          </tr>
        ))}
      </tbody>
      {one.part_count > one.parts.length && (
        <tfoot>
          <tr>
            <td colSpan={4} className="dim">
              {t("evidence.ranks.more", { count: one.part_count - one.parts.length })}
            </td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}

function Side({ half, none }: { half: CollectivePart["gave"]; none: string }) {
  if (half === null) {
    return (
      <span className="dim" title={none}>
        –<span className="sr">{none}</span>
      </span>
    );
  }
  return (
    <span title={half.score === null ? undefined : exactReal(half.score)}>
      <VerdictMark verdict={half.verdict} />
    </span>
  );
}
