import { type KeyboardEvent, useId } from "react";
import type { Suspect } from "../../../api/types";
import { callSite, framePlace } from "../../../base/comparison/stackFrames";
import { formatReal } from "../../../base/numbers/format";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { ErrorBar } from "../../../widgets/marks/ErrorBar";
import { ClassMark } from "../../../widgets/marks/Mark";
import { usePrinting } from "../../../widgets/page/printing";
import { callsOf, useOriginWalk, useSuspects } from "../selection/OriginsProvider";
import { useResult } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Suspects.module.css";

const KINDS = ["origin", "second", "amplifier", "steep", "structure", "setting"] as const;

/** Where to look, in order: one line, which opens to the list. */
export function Suspects() {
  const { t } = useTranslation();
  const { suspects } = useSuspects();
  const { address, update } = useSelection();
  const listId = useId();
  const printing = usePrinting();
  const calls = callsOf(suspects);
  const only = suspects?.items.length === 1 && calls[0]?.kind === "origin" && !suspects.blind; // the banner says all of it
  if (!suspects || calls.length === 0 || (only && address.suspects !== true)) return null;
  const counts = KINDS.map((kind) => ({ kind, count: suspects.items.filter((one) => one.kind === kind).length }));
  const obvious = calls.filter((one) => one.kind === "origin" || one.kind === "second").length === 1;
  const open = printing || (address.suspects ?? !obvious);
  const blind = suspects.blind;
  return (
    <section className={classes.suspects} aria-label={t("suspects.title")} data-testid="suspects">
      <div className={classes.line}>
        <button
          type="button"
          className={`plain ${classes.fold}`}
          aria-expanded={open}
          aria-controls={open ? listId : undefined}
          onClick={() => update({ suspects: !open }, true)}
          data-testid="suspects-fold"
        >
          <Icon name="chevron" size={12} turn={open ? 90 : 0} />
          <strong>{t("suspects.title")}:</strong>{" "}
          {counts
            .filter(({ count }) => count > 0)
            .map(({ kind, count }) => t(`suspects.counts.${kind}`, { count }))
            .join(t("suspects.comma"))}
          {calls.length > 1 && (
            <span className="dim" data-screen>
              {" "}
              (n)
            </span>
          )}
        </button>
        {blind && (
          <span className={classes.blind} title={say(blind.why, blind.why_said)} data-testid="suspects-blind">
            <Icon name="warning" size={12} /> {t("suspects.blind")}
          </span>
        )}
      </div>
      {open && (
        <ol id={listId} className={classes.rows} data-testid="suspect-rows">
          {suspects.items.map((one) => (
            <li key={one.number}>{one.address === null ? <Setting row={one} /> : <Call row={one} />}</li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** A setting names no call, so there is nothing to select. */
function Setting({ row }: { row: Suspect }) {
  const { t } = useTranslation();
  return (
    <div className={classes.row} data-kind="setting">
      <span className={classes.number}>{row.number}</span>
      <span className="dim">{t("suspects.kinds.setting")}</span>
      <span className={classes.setting}>{say(row.why, row.why_said)}</span>
    </div>
  );
}

function Call({ row }: { row: Suspect }) {
  const { t } = useTranslation();
  const { summary } = useResult();
  const { unit, selected } = useSelection();
  const { showSuspect } = useOriginWalk();
  const { point } = useSuspects();
  const here = row.step === unit?.step && row.rank === unit?.rank;
  const place = callSite(row.frames, row.called_at);
  const why = say(row.why, row.why_said);
  const cls = row.cls ?? "unknown";
  const enter = () => point(here ? row.address : null);
  const leave = () => point(null);
  return (
    <button
      type="button"
      className={`plain ${classes.row} ${classes.call}`}
      aria-current={here && row.address === selected ? "true" : undefined}
      onClick={() => showSuspect(row)}
      onKeyDown={walkRows}
      onMouseEnter={enter}
      onMouseLeave={leave}
      onFocus={enter}
      onBlur={leave}
      data-kind={row.kind}
      data-testid="suspect"
    >
      <span className={classes.number}>{row.number}</span>
      <span className={classes.kind}>
        <ClassMark cls={cls} /> {t(`suspects.kinds.${row.kind}`)}
      </span>
      <span className={classes.name}>
        <MiddleName name={row.node ?? ""} tail={22} />
        {!here && summary && summary.units.length > 1 && (
          <span className={`${classes.unit} num`}>
            {t("suspects.unit", { step: row.step ?? 0, rank: row.rank ?? 0 })}
          </span>
        )}
        {row.module && <span className={`${classes.module} mono`}>{row.module}</span>}
      </span>
      <span className={`${classes.place} mono`} title={row.called_at || undefined}>
        {place ? framePlace(place) : ""}
      </span>
      <span className={classes.errors}>
        <ErrorBar score={row.in_score} error={row.in_error} cls={cls} label={t("list.inputHint")} />
        <span aria-hidden="true">→</span>
        <ErrorBar score={row.out_score} error={row.out_error} cls={cls} label={t("list.outputHint")} />
      </span>
      <span className={`${classes.times} num`} title={t("suspects.timesHint")}>
        {typeof row.times === "number" ? `×${row.times < 100 ? formatReal(row.times, 3) : Math.round(row.times)}` : ""}
      </span>
      <span className={classes.why} title={why}>
        {why}
      </span>
    </button>
  );
}

/** The arrow keys go from row to row. */
function walkRows(event: KeyboardEvent<HTMLButtonElement>): void {
  const item = event.currentTarget.closest("li");
  const next =
    event.key === "ArrowDown"
      ? item?.nextElementSibling
      : event.key === "ArrowUp"
        ? item?.previousElementSibling
        : null;
  const button = next?.querySelector("button");
  if (!button) return;
  event.preventDefault();
  button.focus();
}
