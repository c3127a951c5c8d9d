import { Button, FileButton } from "@mantine/core";
import { useCallback, useState } from "react";
import {
  serverCommand,
  useCallPrecheck,
  useDumpPrecheck,
  usePrecheckActions,
  useUnitPrecheck,
} from "../../../api/comparison/prechecks";
import { isOver, useJob } from "../../../api/jobs";
import type { Comparison } from "../../../api/types";
import { SIDES, type Side } from "../../../base/comparison/sides";
import { useTranslation } from "../../../texts/useTranslation";
import { CopyButton } from "../../../widgets/basic/CopyButton";
import { JobBar } from "../../../widgets/basic/JobBar";
import { Failure } from "../../../widgets/basic/States";
import { Term } from "../../../widgets/late/Term";
import { PrecheckLine } from "../../../widgets/marks/PrecheckMark";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import panel from "./EvidencePanel.module.css";
import classes from "./PrecheckBox.module.css";
import type { SectionProps } from "./sectionProps";

/** Is this operator itself wrong, or only fed wrong data? The pre-check results of both dumps for the call. */
export function PrecheckBox({ node }: SectionProps) {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { unit } = useSelection();
  const alone = useCallPrecheck(comparison.id, unit, node.address);
  const { checked } = useUnitPrecheck(comparison.id, unit);
  if (node.kind !== "api") return null;
  const missing = SIDES.filter((side) => checked && checked[side].total === 0);
  return (
    <section className={panel.section} aria-label={t("alone.title")} data-testid="alone">
      {missing.length < SIDES.length && (
        <h3 className={panel.title}>
          <Term word="alone">{t("alone.title")}</Term> <span className="dim">{t("alone.question")}</span>
        </h3>
      )}
      {alone.error && <Failure problem={alone.error} />}
      {SIDES.map((side) => {
        const told = alone.data?.[side];
        if (told) return <PrecheckLine key={side} side={side} told={told} />;
        if (!alone.data || !checked || checked[side].total === 0) return null;
        return (
          <p key={side} className="dim">
            {t("alone.nothingSaid", { side: t(`comparison.${side}`) })}
          </p>
        );
      })}
      {missing.length > 0 && <HowTo sides={missing} comparison={comparison} />}
    </section>
  );
}

/** Closed, this takes one line, so the reason, the stack and the plot stay in view. */
function HowTo({ sides, comparison }: { sides: readonly Side[]; comparison: Comparison }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className={classes.summary} data-testid="alone-how">
        {sides.length === SIDES.length ? (
          <strong>
            <Term word="alone">{t("alone.title")}</Term>
          </strong>
        ) : (
          sides.map((side) => t(`comparison.${side}`)).join()
        )}{" "}
        <span className="dim">{t("alone.unchecked")}</span> <code>dumpscope precheck</code>
      </summary>
      {open && sides.map((side) => <Unchecked key={side} side={side} dump={comparison[side]} />)}
    </details>
  );
}

/** A side without a pre-check: the command that would make one, and the ways to bring it here. */
function Unchecked({ side, dump }: { side: Side; dump: string }) {
  const { t } = useTranslation();
  const { data } = useDumpPrecheck(dump);
  const { run, cancel, send, told } = usePrecheckActions(dump);
  const [started, setStarted] = useState<string | null>(null);
  const over = useCallback(() => void told(), [told]);
  const last = data?.job ?? undefined;
  const job = useJob(started ?? (isOver(last) ? null : (last?.id ?? null)), over) ?? last;
  if (!data) return null;
  const command = serverCommand(data.command);
  const running = job !== undefined && !isOver(job);
  return (
    <div className={classes.unchecked} data-testid={`unchecked-${side}`}>
      {data.total > 0 && <span>{t("alone.elsewhere", { side: t(`comparison.${side}`) })}</span>}
      <span>{t("alone.where", { side: t(`comparison.${side}`) })}</span>
      <span className={classes.command}>
        <code>{command}</code> <CopyButton text={command} label={t("alone.copyCommand")} />
      </span>
      {running ? (
        <JobBar
          job={job}
          label={t("alone.running")}
          onCancel={() => cancel.mutate()}
          cancelling={cancel.isPending || cancel.isSuccess}
        />
      ) : (
        <span className={classes.actions}>
          {data.can_run && (
            <Button
              size="compact-xs"
              loading={run.isPending}
              onClick={() => {
                cancel.reset();
                run.mutate("cpu", { onSuccess: (accepted) => setStarted(accepted.job) });
              }}
              data-testid={`run-precheck-${side}`}
            >
              {t("alone.run")}
            </Button>
          )}
          <FileButton onChange={(file) => file && send.mutate(file)} accept=".jsonl">
            {(props) => (
              <Button
                {...props}
                variant="default"
                size="compact-xs"
                loading={send.isPending}
                data-testid={`send-precheck-${side}`}
              >
                {t("alone.send")}
              </Button>
            )}
          </FileButton>
        </span>
      )}
      {job?.status === "failed" && <Failure problem={job.error} />}
      {(run.error ?? send.error) && <Failure problem={run.error ?? send.error} />}
    </div>
  );
}
