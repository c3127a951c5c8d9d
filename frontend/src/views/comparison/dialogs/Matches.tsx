import { Button } from "@mantine/core";
import { useRef } from "react";
import { handMatchesUrl, useApplyMatches, useHandChange, useHandMatches } from "../../../api/comparison/matches";
import type { HandEdit } from "../../../api/types";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { Empty, Failure, Loading } from "../../../widgets/basic/States";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Matching.module.css";

/** Most edits drawn at once: the last ones. */
const SHOWN = 300;

/** The matches made by hand of this comparison: what became of each, undo, files, and comparing again. */
export function Matches() {
  const { t } = useTranslation();
  const { id: comparison } = useShownComparison();
  const { unit, update } = useSelection();
  const edits = useHandMatches(comparison, unit);
  const change = useHandChange(comparison, unit);
  const apply = useApplyMatches(comparison);
  const file = useRef<HTMLInputElement>(null);
  const count = edits.data?.count ?? 0;
  const shown = (edits.data?.edits ?? []).slice(-SHOWN);

  const take = async (input: HTMLInputElement) => {
    const chosen = input.files?.[0];
    input.value = "";
    if (chosen) change.mutate({ kind: "import", matches: await chosen.text() });
  };

  return (
    <div data-testid="matches">
      <p className={`${classes.lead} dim`}>{t("matching.about")}</p>
      {edits.error && <Failure problem={edits.error} onRetry={() => void edits.refetch()} />}
      {change.error && <Failure problem={change.error} />}
      {apply.error && <Failure problem={apply.error} />}
      {edits.isPending && <Loading />}
      {edits.data && count === 0 && <Empty>{t("matching.none")}</Empty>}
      {shown.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        // biome-ignore lint/a11y/useSemanticElements: a box that scrolls
        <div className={classes.edits} role="group" tabIndex={0} aria-label={t("matching.list")}>
          <table className={classes.table}>
            <thead>
              <tr>
                <th>{t("comparison.target")}</th>
                <th>{t("comparison.golden")}</th>
                <th>{t("matching.state")}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((edit, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the place in the list is what tells edits apart
                <EditRow key={index} edit={edit} onSelect={(node) => update({ node, dialog: null })} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {count > shown.length && (
        <p className="dim">{t("matching.shown", { shown: formatCount(shown.length), total: formatCount(count) })}</p>
      )}
      <div className={classes.actions}>
        <Button
          onClick={() => apply.mutate(undefined, { onSuccess: () => update({ dialog: null }, true) })}
          loading={apply.isPending}
          disabled={!edits.data}
          data-testid="apply-matches"
        >
          {t("comparison.again")}
        </Button>
        <Button
          variant="default"
          onClick={() => change.mutate({ kind: "undo" })}
          loading={change.isPending}
          disabled={count === 0}
          data-testid="undo-match"
        >
          {t("matching.undo")}
        </Button>
        <Button
          variant="default"
          {...(count === 0 ? { disabled: true } : { component: "a", href: handMatchesUrl(comparison), download: true })}
          data-testid="export-matches"
        >
          {t("matching.export")}
        </Button>
        <Button variant="default" onClick={() => file.current?.click()}>
          {t("matching.import")}
        </Button>
        <input
          ref={file}
          type="file"
          hidden
          accept=".yaml,.yml"
          aria-label={t("matching.import")}
          onChange={(event) => void take(event.currentTarget)}
          data-testid="import-matches"
        />
      </div>
    </div>
  );
}

function EditRow({ edit, onSelect }: { edit: HandEdit; onSelect: (name: string) => void }) {
  const { t } = useTranslation();
  return (
    <tr data-state={edit.state} data-testid="edit">
      {[edit.target, edit.golden].map((name, side) => (
        <td key={side === 0 ? "target" : "golden"}>
          {name === null ? (
            <span className="dim">{t("match.none")}</span>
          ) : (
            <button
              type="button"
              className={`plain ${classes.node}`}
              disabled={edit.state === "absent"}
              onClick={() => onSelect(name)}
            >
              <MiddleName name={name} />
            </button>
          )}
        </td>
      ))}
      <td className={classes.state} title={t(`matching.stateHelp.${edit.state}`)}>
        {t(`matching.states.${edit.state}`)}
      </td>
    </tr>
  );
}
