import { Button, CloseButton, Progress, TextInput } from "@mantine/core";
import { type FormEvent, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useRegisterDump } from "../../api/changes";
import { useDump } from "../../api/queries";
import { fromInput } from "../../base/drop";
import { formatBytes } from "../../base/numbers";
import { Icon } from "../../widgets/Icon";
import { Link } from "../../widgets/place";
import { describeProblem, Failure, Original } from "../../widgets/States";
import type { Picked } from "./CompareForm";
import classes from "./HomeView.module.css";
import { UseAs } from "./UseAs";
import type { UploadLine, Uploads } from "./useUploads";

interface Picking {
  picked: Picked;
  onPick: (picked: Picked) => void;
}

interface AddDumpProps extends Picking {
  uploads: Uploads;
  over: boolean;
}

/** Two ways in: a path the server can read, or files of this browser. */
export function AddDump({ uploads, over, picked, onPick }: AddDumpProps) {
  const { t } = useTranslation();
  const [path, setPath] = useState("");
  const register = useRegisterDump();
  const [registered, setRegistered] = useState<{ id: string; name: string }[]>([]);
  const folder = useRef<HTMLInputElement>(null);
  const files = useRef<HTMLInputElement>(null);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (path.trim() === "") return;
    register.mutate(path.trim(), {
      onSuccess: ({ id }, given) => {
        setPath("");
        const name = given.replace(/[/\\]+$/, "").replace(/^.*[/\\]/, "");
        setRegistered((all) => [{ id, name }, ...all.filter((one) => one.id !== id)]);
      },
    });
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
        {registered.map(({ id, name }) => (
          <li key={id} className={classes.upload} data-testid="registered">
            <Received id={id} name={name} waits={t("home.reading", { name })} picked={picked} onPick={onPick} />
            <CloseButton
              size="xs"
              aria-label={t("app.close")}
              onClick={() => setRegistered((all) => all.filter((one) => one.id !== id))}
            />
          </li>
        ))}
        {uploads.lines.map((line) => (
          <Line key={line.key} line={line} uploads={uploads} picked={picked} onPick={onPick} />
        ))}
      </ul>
    </section>
  );
}

/** What became of files that arrived: they are read next, and may turn out to be no dump. */
function Received({ id, name, waits, picked, onPick }: { id: string; name: string; waits: string } & Picking) {
  const { t } = useTranslation();
  const dump = useDump(id).data;
  if (dump?.status === "ready")
    return (
      <span className={classes.received}>
        <Link to={`dumps/${encodeURIComponent(id)}`}>{t("home.uploadRead", { name })}</Link>
        <UseAs dump={dump} picked={picked} onPick={onPick} />
      </span>
    );
  if (dump?.status !== "failed") return <span>{waits}</span>;
  const { detail, hint, original } = describeProblem(dump.error);
  return (
    <span className={classes.failed}>
      {t("home.uploadUnreadable", { name })}: {detail} {hint ?? ""}
      {original && <Original text={original} />}
    </span>
  );
}

function Line({ line, uploads, picked, onPick }: { line: UploadLine; uploads: Uploads } & Picking) {
  const { t } = useTranslation();
  const { name, bytes } = line.bundle;
  const problem = line.state === "failed" ? describeProblem(line.problem) : null;
  return (
    <li className={classes.upload} data-state={line.state} data-testid="upload">
      <span title={name}>
        {line.state === "sending" && t("home.uploading", { name, size: formatBytes(bytes) })}
        {line.dump !== null && (
          <Received id={line.dump} name={name} waits={t("home.uploaded", { name })} picked={picked} onPick={onPick} />
        )}
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
