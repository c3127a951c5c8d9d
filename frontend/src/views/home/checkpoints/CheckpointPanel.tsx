import { ActionIcon, Button, TextInput, Tooltip } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useCheckpointDiffs, useDeleteCheckpointDiff, useDiffCheckpoints } from "../../../api/checkpoints";
import type { CheckpointDiff } from "../../../api/types";
import { navigate } from "../../../base/address/location";
import { formatMoment } from "../../../base/numbers/dates";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { Link } from "../../../widgets/basic/navigation";
import { describeProblem, Failure } from "../../../widgets/basic/States";
import classes from "../HomeView.module.css";

/** On the start page: compare two checkpoints of the server, and what was compared before. */
export function CheckpointPanel() {
  const { t } = useTranslation();
  const query = useCheckpointDiffs("");
  const rows = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <section className="panel" aria-labelledby="checkpoints-title" data-testid="checkpoint-diffs">
      <div className={classes.listHead}>
        <h2 id="checkpoints-title">{t("checkpoints.title")}</h2>
        <span className="dim">{t("checkpoints.hint")}</span>
      </div>
      <CheckpointForm />
      {query.error && <Failure problem={query.error} onRetry={() => void query.refetch()} />}
      {rows.length > 0 && (
        <table className={classes.table}>
          <tbody>
            {rows.map((row) => (
              <Row key={row.id} row={row} />
            ))}
          </tbody>
        </table>
      )}
      {query.hasNextPage && (
        <Button
          variant="subtle"
          size="compact-xs"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {t("app.more")}
        </Button>
      )}
    </section>
  );
}

function CheckpointForm() {
  const { t } = useTranslation();
  const [paths, setPaths] = useState({ target: "", golden: "" });
  const start = useDiffCheckpoints();
  const target = paths.target.trim();
  const golden = paths.golden.trim();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (target === "" || golden === "") return;
    start.mutate(
      { target, golden, rename: [] },
      { onSuccess: ({ id }) => navigate(`checkpoints/${encodeURIComponent(id)}`) },
    );
  };
  const field = (side: "target" | "golden") => (
    <TextInput
      label={t(`checkpoints.${side}`)}
      placeholder={t("checkpoints.path")}
      value={paths[side]}
      onChange={(event) => {
        const { value } = event.currentTarget;
        setPaths((now) => ({ ...now, [side]: value }));
      }}
      data-testid={`checkpoint-${side}`}
    />
  );
  return (
    <form onSubmit={submit}>
      <div className={classes.checkpoints}>
        {field("target")}
        {field("golden")}
        <Button
          type="submit"
          variant="default"
          disabled={target === "" || golden === ""}
          loading={start.isPending}
          data-testid="compare-checkpoints"
        >
          {t("checkpoints.start")}
        </Button>
      </div>
      {start.error && <Failure problem={start.error} />}
    </form>
  );
}

function Row({ row }: { row: CheckpointDiff }) {
  const { t, language } = useTranslation();
  const remove = useDeleteCheckpointDiff();
  const failed = row.status === "failed" ? describeProblem(row.error).detail : null;
  return (
    <tr data-id={row.id}>
      <td>
        <Link to={`checkpoints/${encodeURIComponent(row.id)}`}>
          <bdi>{row.name}</bdi>
        </Link>
      </td>
      <td>
        <div className={classes.sub} title={failed ?? undefined}>
          {row.summary === null ? failed : say(row.summary, row.said)}
        </div>
      </td>
      <td className="dim">{t(`app.status.${row.status}`)}</td>
      <td className="dim">{formatMoment(row.created, language)}</td>
      <td>
        <Tooltip label={t("app.delete")}>
          <ActionIcon
            size="sm"
            aria-label={`${t("app.delete")}: ${row.name}`}
            loading={remove.isPending}
            onClick={() => remove.mutate(row.id)}
          >
            <Icon name="trash" size={12} />
          </ActionIcon>
        </Tooltip>
      </td>
    </tr>
  );
}
