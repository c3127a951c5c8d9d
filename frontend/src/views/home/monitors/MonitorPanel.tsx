import { useDeleteMonitor, useMonitors, useStartMonitor } from "../../../api/monitors";
import { navigate } from "../../../base/address/location";
import { useTranslation } from "../../../texts/useTranslation";
import { PathForm, PathPanel, type PathRow, RemoveButton } from "../paths/PathPanel";

/** On the start page: open a monitored run of the server, alone or beside another, and what was opened before. */
export function MonitorPanel() {
  const { t } = useTranslation();
  const start = useStartMonitor();
  return (
    <PathPanel
      title={t("monitors.title")}
      hint={t("monitors.hint")}
      testId="monitors"
      noun="monitors"
      list={useMonitors("")}
      remove={(row) => <Remove row={row} />}
      form={
        <PathForm
          fields={[
            { label: t("monitors.path"), testId: "monitor-path" },
            { label: t("monitors.other"), testId: "monitor-other" },
          ]}
          optional
          placeholder={t("checkpoints.path")}
          button={t("monitors.start")}
          buttonId="start-monitor"
          starting={start}
          onStart={(path, other) =>
            start.mutate(
              { path, other: other === "" ? null : other },
              { onSuccess: ({ id }) => navigate(`monitors/${encodeURIComponent(id)}`) },
            )
          }
        />
      }
    />
  );
}

function Remove({ row }: { row: PathRow }) {
  return <RemoveButton row={row} removal={useDeleteMonitor()} />;
}
