import { useCheckpointDiffs, useDeleteCheckpointDiff, useDiffCheckpoints } from "../../../api/checkpoints";
import { navigate } from "../../../base/address/location";
import { useTranslation } from "../../../texts/useTranslation";
import { PathForm, PathPanel, type PathRow, RemoveButton } from "../paths/PathPanel";

/** On the start page: compare two checkpoints of the server, and what was compared before. */
export function CheckpointPanel() {
  const { t } = useTranslation();
  const start = useDiffCheckpoints();
  return (
    <PathPanel
      title={t("checkpoints.title")}
      hint={t("checkpoints.hint")}
      testId="checkpoint-diffs"
      noun="checkpoints"
      list={useCheckpointDiffs("")}
      remove={(row) => <Remove row={row} />}
      form={
        <PathForm
          fields={[
            { label: t("checkpoints.target"), testId: "checkpoint-target" },
            { label: t("checkpoints.golden"), testId: "checkpoint-golden" },
          ]}
          placeholder={t("checkpoints.path")}
          button={t("checkpoints.start")}
          buttonId="compare-checkpoints"
          starting={start}
          onStart={(target, golden) =>
            start.mutate(
              { target, golden, rename: [] },
              { onSuccess: ({ id }) => navigate(`checkpoints/${encodeURIComponent(id)}`) },
            )
          }
        />
      }
    />
  );
}

function Remove({ row }: { row: PathRow }) {
  return <RemoveButton row={row} removal={useDeleteCheckpointDiff()} />;
}
