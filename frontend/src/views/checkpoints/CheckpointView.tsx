import { useQueryClient } from "@tanstack/react-query";
import { useCancelCheckpointDiff, useCheckpointDiff, useCheckpointSummary } from "../../api/checkpoints";
import { useJob } from "../../api/jobs";
import type { CheckpointDiff } from "../../api/types";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { JobBar } from "../../widgets/basic/JobBar";
import { Link } from "../../widgets/basic/navigation";
import { Notes, ProblemList } from "../../widgets/basic/Problems";
import { Failure, Loading } from "../../widgets/basic/States";
import { usePainted } from "../../widgets/late/painted";
import { Header } from "../../widgets/page/Header";
import classes from "./Checkpoints.module.css";
import { TensorList } from "./TensorList";

/** Two checkpoints compared: one sentence, then the tensors, the worst first. */
export function CheckpointView({ id }: { id: string }) {
  const { t } = useTranslation();
  const query = useCheckpointDiff(id);
  usePainted(!query.isPending);
  const diff = query.data;
  return (
    <div className={classes.screen}>
      <Header>
        <bdi className={classes.heading}>{diff?.name}</bdi>
      </Header>
      <main id="main" className={classes.main} tabIndex={-1}>
        <h1 className="sr">{t("checkpoints.title")}</h1>
        {query.isPending && <Loading />}
        {query.error && <Failure problem={query.error} onRetry={() => void query.refetch()} />}
        {diff && <Body diff={diff} />}
      </main>
    </div>
  );
}

function Body({ diff }: { diff: CheckpointDiff }) {
  const { t } = useTranslation();
  if (diff.status === "pending") return <Running diff={diff} />;
  if (diff.status === "done") return <Result diff={diff} />;
  return (
    <section className="panel" data-testid="ended">
      {diff.status === "failed" ? (
        <Failure problem={diff.error} />
      ) : (
        <p className={classes.words}>{t("checkpoints.cancelled")}</p>
      )}
      <p className={classes.words}>
        <Link to="">{t("app.backHome")}</Link>
      </p>
    </section>
  );
}

function Running({ diff }: { diff: CheckpointDiff }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const job = useJob(diff.job, () => void client.invalidateQueries({ queryKey: ["checkpoint-diffs"] }));
  const cancel = useCancelCheckpointDiff();
  return (
    <section className="panel">
      <JobBar
        job={job}
        label={t("checkpoints.running")}
        onCancel={() => cancel.mutate(diff.id)}
        cancelling={cancel.isPending}
      />
      {cancel.error && <Failure problem={cancel.error} />}
    </section>
  );
}

function Result({ diff }: { diff: CheckpointDiff }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useCheckpointSummary(diff.id, true);
  return (
    <>
      <section className={`panel ${classes.answer}`} aria-label={t("checkpoints.answer")}>
        <p className={classes.sentence} data-testid="checkpoint-summary">
          {say(diff.summary ?? "", diff.said)}
        </p>
        <p className="dim">
          <bdi className="mono">{diff.target}</bdi> · <bdi className="mono">{diff.golden}</bdi>
        </p>
        {error && <Failure problem={error} onRetry={() => void refetch()} />}
        {data && (
          <p className={classes.notes}>
            {data.rules.length > 0 && (
              <Notes label={t("checkpoints.renames", { count: data.rules.length })} warn={false} testId="renames">
                <ul className={classes.rules}>
                  {data.rules.map((rule) => (
                    <li key={rule} className="mono">
                      {rule}
                    </li>
                  ))}
                </ul>
              </Notes>
            )}
            {data.problems.length > 0 && (
              <Notes label={t("checkpoints.problems", { count: data.problems.length })} testId="checkpoint-problems">
                <ProblemList problems={data.problems} />
              </Notes>
            )}
          </p>
        )}
      </section>
      <TensorList id={diff.id} />
    </>
  );
}
