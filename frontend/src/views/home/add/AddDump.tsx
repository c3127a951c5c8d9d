import { Button, CloseButton, TextInput } from "@mantine/core";
import { type FormEvent, useRef, useState } from "react";
import { useOpenTable, useRegisterDump } from "../../../api/changes";
import { navigate } from "../../../base/address/location";
import { formatBytes } from "../../../base/numbers/format";
import { fileName, isResultTable } from "../../../base/text/serverPaths";
import { readInput } from "../../../base/upload/pickedFiles";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { Failure } from "../../../widgets/basic/States";
import classes from "../HomeView.module.css";
import type { SidePicking } from "../useSides";
import type { Uploads } from "../useUploads";
import { PathPicker } from "./PathPicker";
import { ReceivedDump } from "./ReceivedDump";
import { UnfinishedLines, UploadLineRow } from "./UploadLines";

interface AddDumpProps extends SidePicking {
  uploads: Uploads;
}

/** Two ways in: a path the server can read, or files of this browser. */
export function AddDump({ uploads, picked, onPick }: AddDumpProps) {
  const { t } = useTranslation();
  const [path, setPath] = useState("");
  const register = useRegisterDump();
  const [registered, setRegistered] = useState<{ id: string; name: string }[]>([]);
  const folder = useRef<HTMLInputElement>(null);
  const files = useRef<HTMLInputElement>(null);

  const [browsing, setBrowsing] = useState(false);

  const table = useOpenTable();
  const add = async (chosen: string) => {
    if (isResultTable(chosen)) {
      const opened = await table.mutateAsync(chosen);
      navigate(`comparisons/${encodeURIComponent(opened.id)}`);
      return;
    }
    const { id } = await register.mutateAsync(chosen);
    setRegistered((all) => [{ id, name: fileName(chosen) }, ...all.filter((one) => one.id !== id)]);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // What goes wrong is shown from `register.error` and `table.error`.
    const chosen = path.trim();
    if (chosen === "") return;
    add(chosen).then(
      () => setPath((now) => (now.trim() === chosen ? "" : now)), // the next one may be there already
      () => {},
    );
  };

  const take = (input: HTMLInputElement) => {
    uploads.start(readInput(input.files));
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
          loading={register.isPending || table.isPending}
          disabled={path.trim() === ""}
          data-testid="register"
        >
          {t("home.register")}
        </Button>
        <Button variant="default" onClick={() => setBrowsing(true)} data-testid="browse">
          {t("home.browse.open")}
        </Button>
      </form>
      <PathPicker opened={browsing} onClose={() => setBrowsing(false)} onRegister={add} />
      {register.error && <Failure problem={register.error} />}
      {table.error && <Failure problem={table.error} />}
      <div className={classes.drop} data-testid="drop">
        <Icon name="upload" />
        <span>{t("home.drop")}</span>
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
      {uploads.room !== null && (
        <p className={`${classes.room} dim`} data-testid="upload-room">
          {t("home.room", { room: formatBytes(uploads.room) })}
        </p>
      )}
      {uploads.empty && <p className="dim">{t("home.emptyDrop")}</p>}
      <ul className={classes.uploads} aria-live="polite">
        {registered.map(({ id, name }) => (
          <li key={id} className={classes.upload} data-testid="registered">
            <ReceivedDump id={id} name={name} waits={t("home.reading", { name })} picked={picked} onPick={onPick} />
            <CloseButton
              size="xs"
              aria-label={t("app.close")}
              onClick={() => setRegistered((all) => all.filter((one) => one.id !== id))}
            />
          </li>
        ))}
        {uploads.lines.map((line) => (
          <UploadLineRow key={line.key} line={line} uploads={uploads} picked={picked} onPick={onPick} />
        ))}
        <UnfinishedLines uploads={uploads} />
      </ul>
    </section>
  );
}
