import type { Coverage, Summary } from "../../../api/types";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { MiddleName } from "../../../widgets/basic/MiddleName";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Banner.module.css";

type Unjudged = NonNullable<Coverage["first"]>;
type Place = Pick<Unjudged, "step" | "rank" | "node">;

/** The third form of the answer: nothing differs in what was compared, and from which call on not everything was. */
export function NotFullyJudged({ summary }: { summary: Summary }) {
  const { t } = useTranslation();
  const first = summary.coverage?.first ?? null;
  return (
    <>
      <h2 className={classes.title} data-testid="not-fully-judged">
        {t("coverage.title")}
      </h2>
      {first ? (
        <>
          <FromCall first={first} />
          <span>{say(first.sentence, first.said)}</span>
        </>
      ) : (
        <span>{t("coverage.missingPart")}</span>
      )}
    </>
  );
}

/** Beside a cause: from which call on something that matters was not judged. */
export function NotJudgedToo({ summary }: { summary: Summary }) {
  const { t } = useTranslation();
  const first = summary.coverage?.first ?? null;
  if (summary.outcome !== "diverged" || !first) return null;
  return (
    <p className={`${classes.reason} ${classes.warned}`} data-testid="not-judged-too">
      <strong>{t("coverage.title")}</strong> <FromCall first={first} /> {say(first.sentence, first.said)}
    </p>
  );
}

function FromCall({ first }: { first: Unjudged }) {
  const { t } = useTranslation();
  return (
    <span data-testid="not-judged-from">
      {t("coverage.from")} <Call place={first} /> {t("coverage.onward")}
    </span>
  );
}

export function Call({ place }: { place: Place }) {
  const { update } = useSelection();
  const { step, rank, node } = place;
  return (
    <button type="button" className={`plain mono ${classes.input}`} onClick={() => update({ step, rank, node })}>
      <MiddleName name={node} tail={30} />
    </button>
  );
}
