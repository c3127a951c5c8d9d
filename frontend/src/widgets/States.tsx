/** What stands where data would be: loading, failed, empty. */
import { Button, Loader } from "@mantine/core";
import i18next from "i18next";
import { Component, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, NO_BODY, UNREACHABLE } from "../api/client";
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

/** Any thrown value as text and hint; job errors travel in the server's error body. */
export function describeProblem(problem: unknown): { detail: string; hint: string | null } {
  if (problem instanceof ApiError) {
    if (problem.code === UNREACHABLE)
      return { detail: i18next.t("app.unreachable"), hint: i18next.t("app.unreachableHint") };
    if (problem.code === NO_BODY) return { detail: i18next.t("app.answered", { status: problem.status }), hint: null };
    return { detail: problem.detail, hint: problem.hint };
  }
  if (problem instanceof Error) return { detail: problem.message, hint: null };
  if (typeof problem === "object" && problem !== null && "detail" in problem) {
    const body = problem as { detail: unknown; hint?: unknown };
    return { detail: String(body.detail), hint: typeof body.hint === "string" ? body.hint : null };
  }
  return { detail: typeof problem === "string" ? problem : JSON.stringify(problem), hint: null };
}

interface FailureProps {
  title?: string;
  problem: unknown;
  onRetry?: () => void;
}

export function Failure({ title, problem, onRetry }: FailureProps) {
  const { t } = useTranslation();
  const { detail, hint } = describeProblem(problem);
  return (
    <div className={classes.failure} role="alert" data-testid="failure">
      <Icon name="warning" size={16} />
      <div>
        <strong>{title ?? t("app.failed")}</strong>
        <div className={classes.detail}>{detail}</div>
        {hint && <div className="dim">{hint}</div>}
        {onRetry && (
          <Button mt={6} variant="default" onClick={onRetry}>
            {t("app.retry")}
          </Button>
        )}
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
