import { Button, CloseButton, Progress, TextInput } from "@mantine/core";
import { type FormEvent, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useDump, useRegisterDump } from "../../api/queries";
import { fromInput } from "../../base/drop";
import { formatBytes } from "../../base/numbers";
import { Icon } from "../../widgets/Icon";
import { Link } from "../../widgets/place";
import { describeProblem, Failure, Original } from "../../widgets/States";
import classes from "./HomeView.module.css";
import type { UploadLine, Uploads } from "./useUploads";

/** Two ways in: a path the server can read, or files of this browser. */
export function AddDump({ uploads, over }: { uploads: Uploads; over: boolean }) {
  const { t } = useTranslation();
  const [path, setPath] = useState("");
  const register = useRegisterDump();
  const folder = useRef<HTMLInputElement>(null);
  const files = useRef<HTMLInputElement>(null);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (path.trim() === "") return;
    register.mutate(path.trim(), { onSuccess: () => setPath("") });
  };

  const take = (input: HTMLInputElement) => {
    uploads.start(fromInput(input.files));
    input.value = "";
  };

  return (
    <section className={`panel ${classes.card}`} aria-labelledby="add-title">
      <h2 className={classes.title} id="add-title">
        {t("home.add")}
      </h2>
      <form className={classes.register} onSubmit={submit}>
        <TextInput
          aria-label={t("home.serverPath")}
          placeholder={`${t("home.serverPath")} — ${t("home.pathHint")}`}
          title={t("home.pathHint")}
          value={path}
          onChange={(event) => setPath(event.currentTarget.value)}
          styles={{ input: { fontFamily: "var(--mono)" } }}
          data-testid="server-path"
        />
        <Button
          type="submit"
          variant="default"
          loading={register.isPending}
          disabled={path.trim() === ""}
          data-testid="register"
        >
          {t("home.register")}
        </Button>
      </form>
      {register.error && <Failure problem={register.error} />}
      <div className={classes.drop} data-over={over || undefined} data-testid="drop">
        <Icon name="upload" />
        <span>{over ? t("home.dropActive") : t("home.drop")}</span>
        <Button variant="default" size="compact-xs" onClick={() => folder.current?.click()}>
          {t("home.chooseFolder")}
        </Button>
        <Button variant="default" size="compact-xs" onClick={() => files.current?.click()}>
          {t("home.chooseFiles")}
        </Button>
        <input
          ref={folder}
          type="file"
          hidden
          multiple
          {...{ webkitdirectory: "" }}
          aria-label={t("home.chooseFolder")}
          onChange={(event) => take(event.currentTarget)}
          data-testid="folder-input"
        />
        <input
          ref={files}
          type="file"
          hidden
          multiple
          aria-label={t("home.chooseFiles")}
          onChange={(event) => take(event.currentTarget)}
          data-testid="file-input"
        />
      </div>
      {uploads.empty && <p className="dim">{t("home.emptyDrop")}</p>}
      <ul className={classes.uploads} aria-live="polite">
        {uploads.lines.map((line) => (
          <Line key={line.key} line={line} uploads={uploads} />
        ))}
      </ul>
    </section>
  );
}

/** What became of files that arrived: they are read next, and may turn out to be no dump. */
function Received({ id, name }: { id: string; name: string }) {
  const { t } = useTranslation();
  const dump = useDump(id).data;
  if (dump?.status === "ready")
    return <Link to={`dumps/${encodeURIComponent(id)}`}>{t("home.uploadRead", { name })}</Link>;
  if (dump?.status !== "failed") return <>{t("home.uploaded", { name })}</>;
  const { detail, hint, original } = describeProblem(dump.error);
  return (
    <span className={classes.failed}>
      {t("home.uploadUnreadable", { name })}: {detail} {hint ?? ""}
      {original && <Original text={original} />}
    </span>
  );
}

function Line({ line, uploads }: { line: UploadLine; uploads: Uploads }) {
  const { t } = useTranslation();
  const { name, bytes } = line.bundle;
  const problem = line.state === "failed" ? describeProblem(line.problem) : null;
  return (
    <li className={classes.upload} data-state={line.state} data-testid="upload">
      <span title={name}>
        {line.state === "sending" && t("home.uploading", { name, size: formatBytes(bytes) })}
        {line.dump !== null && <Received id={line.dump} name={name} />}
        {problem && `${t("home.uploadFailed", { name })}: ${problem.detail} ${problem.hint ?? ""}`}
        {problem?.original && <Original text={problem.original} />}
      </span>
      {line.state === "sending" ? (
        <>
          <Progress value={line.share * 100} w={120} size="sm" aria-label={name} />
          <Button variant="subtle" size="compact-xs" onClick={() => uploads.cancel(line.key)}>
            {t("app.cancel")}
          </Button>
        </>
      ) : (
        <CloseButton size="xs" aria-label={t("app.close")} onClick={() => uploads.dismiss(line.key)} />
      )}
    </li>
  );
}
