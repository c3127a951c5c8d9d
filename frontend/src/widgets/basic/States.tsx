/** Placeholders for data: loading, failed, empty. */

import { Button, Loader } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { ApiError, NO_BODY, UNREACHABLE } from "../../api/client";
import { NOT_IN_FILE, NOT_SEARCHED } from "../../api/file/answer";
import { isPhrases, type Phrase } from "../../base/text/phrases";
import { isSaid, say, sayError, sayForeign } from "../../texts/serverTexts";
import { translate } from "../../texts/translation";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "./Icon";
import classes from "./States.module.css";

export function Loading({ label }: { label?: string }) {
  const { t } = useTranslation();
  return (
    <output className={classes.state} aria-live="polite">
      <Loader size="xs" />
      <span className="dim">{label ?? t("app.loading")}</span>
    </output>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <div className={`${classes.state} dim`}>{children}</div>;
}

export interface Described {
  detail: string;
  hint: string | null;
}

/** Any thrown value as text and hint; job errors travel in the server's error body. */
export function describeProblem(problem: unknown): Described {
  if (problem instanceof ApiError) {
    if (problem.code === UNREACHABLE) return plain(translate("app.unreachable"), translate("app.unreachableHint"));
    if (problem.code === NOT_IN_FILE) return plain(translate("file.absent"));
    if (problem.code === NOT_SEARCHED) return plain(translate("file.notSearched"));
    if (problem.code === NO_BODY) return plain(translate("app.answered", { status: problem.status }));
    return told(problem, problem.code, problem.said, problem.hintSaid);
  }
  if (problem instanceof Error) return plain(problem.message);
  if (typeof problem === "object" && problem !== null && "detail" in problem) {
    const body = problem as Record<string, unknown>;
    const hint = typeof body.hint === "string" ? body.hint : null;
    const kind = typeof body.kind === "string" ? body.kind : null;
    const said = isPhrases(body.said) ? body.said : null;
    const hintSaid = isPhrases(body.hint_said) ? body.hint_said : null;
    return told({ detail: String(body.detail), hint, kind }, String(body.error), said, hintSaid);
  }
  return plain(typeof problem === "string" ? problem : JSON.stringify(problem));
}

const REST_CALL = /\b(GET|POST|PUT|PATCH|DELETE) \/api\b/;

/** What the server lists over REST, the start page lists for readers. */
function forReaders(hint: string | null): string | null {
  return hint !== null && REST_CALL.test(hint) ? translate("app.gone") : hint;
}

function plain(detail: string, hint: string | null = null): Described {
  return { detail, hint };
}

/** The server's error in the reader's language; where the server has no phrase for it, what its code means. */
function told(
  { detail, hint, kind }: { detail: string; hint: string | null; kind: string | null },
  code: string,
  said: Phrase[] | null,
  hintSaid: Phrase[] | null,
): Described {
  const shownHint = forReaders(hint);
  if (isSaid(said))
    return plain(say(detail, said), shownHint === hint && hint !== null ? say(hint, hintSaid) : shownHint);
  return plain((kind === null ? null : sayForeign(kind)) ?? sayError(code) ?? detail);
}

interface FailureProps {
  title?: string;
  problem: unknown;
  onRetry?: () => void;
  /** What to do, if the error itself does not say. */
  remedy?: string;
  /** What can be done about it, below the words. */
  children?: ReactNode;
}

export function Failure({ title, problem, onRetry, remedy, children }: FailureProps) {
  const { t } = useTranslation();
  const { detail, hint } = describeProblem(problem);
  if (isNotInFile(problem)) return <NotInFile />;
  return (
    <div className={classes.failure} role="alert" data-testid="failure">
      <Icon name="warning" size={16} />
      <div>
        <strong>{title ?? t("app.failed")}</strong>
        <div className={classes.detail} data-line="detail">
          {detail}
        </div>
        {(hint ?? remedy) && (
          <div className={classes.hint} data-line="remedy">
            <strong>{t("app.remedy")}:</strong> {hint ?? remedy}
          </div>
        )}
        {onRetry && (
          <Button mt={6} variant="default" onClick={onRetry}>
            {t("app.retry")}
          </Button>
        )}
        {children}
      </div>
    </div>
  );
}

export function isNotInFile(problem: unknown): boolean {
  return problem instanceof ApiError && problem.code === NOT_IN_FILE;
}

/** Nothing failed: a page in a file holds a part of the comparison. */
function NotInFile() {
  const { t } = useTranslation();
  return (
    <p className={`${classes.absent} dim`} data-testid="not-in-file">
      {t("file.absent")}
    </p>
  );
}

interface BoundaryProps {
  title: string;
  children: ReactNode;
  /** A new value (another node, another figure) gives the part another chance. */
  resetKey?: string;
}

/** Keeps the rest of the page alive when one part throws while drawing. */
export class Boundary extends Component<BoundaryProps, { problem: Error | null }> {
  override state: { problem: Error | null } = { problem: null };

  static getDerivedStateFromError(problem: Error) {
    return { problem };
  }

  override componentDidUpdate(previous: BoundaryProps): void {
    if (this.state.problem && previous.resetKey !== this.props.resetKey) this.setState({ problem: null });
  }

  override render(): ReactNode {
    const { problem } = this.state;
    if (!problem) return this.props.children;
    return <Failure title={this.props.title} problem={problem} onRetry={() => this.setState({ problem: null })} />;
  }
}
