import { Button, CloseButton, Progress } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ApiError, api, readReply } from "../../../api/client";
import type { Upload } from "../../../api/types";
import { formatBytes, formatSeconds } from "../../../base/numbers/format";
import { fingerprint } from "../../../base/upload/batches";
import { forgetUpload, listUnfinished, type UnfinishedUpload } from "../../../base/upload/unfinished";
import { useTranslation } from "../../../texts/useTranslation";
import { describeProblem } from "../../../widgets/basic/States";
import classes from "../HomeView.module.css";
import type { SidePicking } from "../useSides";
import type { UploadLine, Uploads } from "../useUploads";
import { ReceivedDump } from "./ReceivedDump";

/** One upload of this page: on its way, arrived, or failed. */
export function UploadLineRow({ line, uploads, picked, onPick }: { line: UploadLine; uploads: Uploads } & SidePicking) {
  const { t } = useTranslation();
  const { name } = line.bundle;
  const problem = line.state === "failed" ? describeProblem(line.problem) : null;
  if (line.state === "sending") return <SendingRow line={line} uploads={uploads} />;
  return (
    <li className={classes.upload} data-state={line.state} data-testid="upload">
      <span title={name}>
        {line.dump !== null && (
          <ReceivedDump
            id={line.dump}
            name={name}
            waits={t("home.uploaded", { name })}
            picked={picked}
            onPick={onPick}
          />
        )}
        {problem && `${t("home.uploadFailed", { name })}: ${problem.detail} ${problem.hint ?? ""}`}
      </span>
      <CloseButton size="xs" aria-label={t("app.close")} onClick={() => uploads.dismiss(line.key)} />
    </li>
  );
}

function SendingRow({ line, uploads }: { line: UploadLine; uploads: Uploads }) {
  const { t } = useTranslation();
  const { name, bytes } = line.bundle;
  const { sent, speed, lost } = line.progress;
  const units = [t("app.units.hours"), t("app.units.minutes"), t("app.units.seconds")] as const;
  return (
    <li className={classes.upload} data-state={lost ? "lost" : "sending"} data-testid="upload">
      <span>
        <span title={name}>{t("home.uploading", { name })}</span>
        {/* Numbers that move are not read out: the line above and the end of it are. */}
        <span className={`${classes.pace} dim`} aria-live="off">
          {t("home.sent", { sent: formatBytes(sent), size: formatBytes(bytes) })}
          {speed !== null && ` · ${formatBytes(Math.round(speed))}/s`}
          {speed !== null && sent < bytes && (
            <> · {t("home.left", { time: formatSeconds((bytes - sent) / speed, units) })}</>
          )}
        </span>
        {lost && <span className={classes.lost}>{t("home.lost")}</span>}
      </span>
      <Progress value={bytes === 0 ? 0 : (sent / bytes) * 100} w={120} size="sm" aria-label={name} />
      <Button variant="subtle" size="compact-xs" onClick={() => uploads.cancel(line.key)}>
        {t("app.cancel")}
      </Button>
    </li>
  );
}

/** Uploads that an earlier page of this browser began: the same files, picked again, go on where they were. */
export function UnfinishedLines({ uploads }: { uploads: Uploads }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const left = useQuery({ queryKey: ["uploads", "unfinished"], queryFn: unfinished });
  const own = new Set(uploads.lines.map((line) => fingerprint(line.bundle.files)));
  const rows = (left.data ?? []).filter(({ print }) => !own.has(print));
  const remove = async ({ print, id }: UnfinishedUpload) => {
    forgetUpload(print);
    await readReply(api().DELETE("/api/uploads/{upload_id}", { params: { path: { upload_id: id } } })).catch(() => {});
    await client.invalidateQueries({ queryKey: ["uploads"] });
  };
  return rows.map((row) => (
    <li key={row.print} className={classes.upload} data-testid="unfinished">
      <span>
        {t("home.unfinished", {
          name: row.name,
          sent: formatBytes(row.state.there),
          size: formatBytes(row.state.bytes),
        })}
      </span>
      <Button variant="subtle" size="compact-xs" onClick={() => void remove(row)}>
        {t("home.discard")}
      </Button>
    </li>
  ));
}

/** Those that the server still has; the others are forgotten. */
async function unfinished(): Promise<(UnfinishedUpload & { state: Upload })[]> {
  const found: (UnfinishedUpload & { state: Upload })[] = [];
  for (const one of listUnfinished()) {
    try {
      const state = await readReply(api().GET("/api/uploads/{upload_id}", { params: { path: { upload_id: one.id } } }));
      if (state.dump === null) found.push({ ...one, state });
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) forgetUpload(one.print);
      else throw problem;
    }
  }
  return found;
}
