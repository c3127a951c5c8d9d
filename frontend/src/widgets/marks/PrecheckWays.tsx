import { Button, FileButton } from "@mantine/core";
import { useCallback, useState } from "react";
import { serverCommand, useDumpPrecheck, usePrecheckActions } from "../../api/comparison/prechecks";
import { isOver, useJob } from "../../api/jobs";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../basic/CopyButton";
import { JobBar } from "../basic/JobBar";
import { Failure } from "../basic/States";
import classes from "./PrecheckWays.module.css";

interface PrecheckWaysProps {
  dump: string;
  /** Tells the ways of two dumps on a page apart. */
  name: string;
  /** Where to run the command. */
  where: string;
  /** Said where the dump has a pre-check that is of other calls. */
  elsewhere: string;
}

/** A dump without a pre-check: the command that would make one, and the ways to bring it here. */
export function PrecheckWays({ dump, name, where, elsewhere }: PrecheckWaysProps) {
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
    <div className={classes.unchecked} data-testid={`unchecked-${name}`}>
      {data.total > 0 && <span>{elsewhere}</span>}
      <span>{where}</span>
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
              data-testid={`run-precheck-${name}`}
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
                data-testid={`send-precheck-${name}`}
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
