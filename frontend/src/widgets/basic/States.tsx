/** Placeholders for data: loading, failed, empty. */
import { Button, Loader } from "@mantine/core";
import i18next from "i18next";
import { Component, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, NO_BODY, UNREACHABLE } from "../../api/client";
import { sayError, sayForeign } from "../../texts/serverTexts";
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
  /** The server's text, if `detail` is in another language. */
  original: string | null;
}

/** Any thrown value as text and hint; job errors travel in the server's error body. */
export function describeProblem(problem: unknown): Described {
  if (problem instanceof ApiError) {
    if (problem.code === UNREACHABLE) return plain(i18next.t("app.unreachable"), i18next.t("app.unreachableHint"));
    if (problem.code === NO_BODY) return plain(i18next.t("app.answered", { status: problem.status }));
    return told(problem.code, problem.detail, problem.hint, problem.kind);
  }
  if (problem instanceof Error) return plain(problem.message);
  if (typeof problem === "object" && problem !== null && "detail" in problem) {
    const body = problem as { error?: unknown; detail: unknown; hint?: unknown; kind?: unknown };
    const hint = typeof body.hint === "string" ? body.hint : null;
    return told(String(body.error), String(body.detail), hint, typeof body.kind === "string" ? body.kind : null);
  }
  return plain(typeof problem === "string" ? problem : JSON.stringify(problem));
}

const REST_CALL = /\b(GET|POST|PUT|PATCH|DELETE) \/api\b/;

/** What the server lists over REST, the start page lists for readers. */
function forReaders(hint: string | null): string | null {
  return hint !== null && REST_CALL.test(hint) ? i18next.t("app.gone") : hint;
}

function plain(detail: string, hint: string | null = null): Described {
  return { detail, hint, original: null };
}

/** The server's error: what its code means in the reader's language, its own words where they are in that language. */
function told(code: string, detail: string, hint: string | null, kind: string | null): Described {
  const meaning = (kind === null ? null : sayForeign(kind)) ?? sayError(code);
  if (meaning === null) return plain(detail, forReaders(hint));
  const told = hint === null || REST_CALL.test(hint) ? detail : `${detail} (${hint})`;
  return { detail: meaning, hint: null, original: told };
}

/** The server's own words, one click away: they hold names and places that a translation by kind leaves out. */
export function OriginalText({ text, open = false }: { text: string; open?: boolean }) {
  const { t } = useTranslation();
  return (
    <details className={classes.original} open={open}>
      <summary>{t("app.original")}</summary>
      <span lang="en">{text}</span>
    </details>
  );
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
  const { detail, hint, original } = describeProblem(problem);
  return (
    <div className={classes.failure} role="alert" data-testid="failure">
      <Icon name="warning" size={16} />
      <div>
        <strong>{title ?? t("app.failed")}</strong>
        <div className={classes.detail}>{detail}</div>
        {(hint ?? remedy) && (
          <div className={classes.hint}>
            <strong>{t("app.remedy")}:</strong> {hint ?? remedy}
          </div>
        )}
        {original && <OriginalText text={original} open />}
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
