import { Button, Modal, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { useArchiveContents, useMakeArchive } from "../../api/dump/callArchive";
import { useScript } from "../../api/dump/nodes";
import type { Unit } from "../../api/records";
import { formatBytes, formatCount } from "../../base/numbers/format";
import type { Phrase } from "../../base/text/phrases";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../basic/CopyButton";
import { downloadText, saveBlob } from "../basic/download";
import { Failure, Loading } from "../basic/States";
import classes from "./ReproduceDialog.module.css";

/** A call of one run, for which there may be a script. */
export interface ScriptOf {
  side: "target" | "golden" | null;
  dump: string;
  name: string;
  unit: Unit;
  /** The comparison that named the call: its plots go into the archive. */
  comparison: string | null;
}

interface ReproduceDialogProps {
  choices: readonly ScriptOf[];
  opened: boolean;
  onClose: () => void;
}

/** The script that runs a call alone: to read, copy or save. */
export function ReproduceDialog({ choices, opened, onClose }: ReproduceDialogProps) {
  const { t } = useTranslation();
  const first = choices[0];
  return (
    <Modal
      opened={opened && first !== undefined}
      onClose={onClose}
      title={t("reproduce.title")}
      size="xl"
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      {opened && first !== undefined && <Choice key={first.name} choices={choices} first={first} />}
    </Modal>
  );
}

function Choice({ choices, first }: { choices: readonly ScriptOf[]; first: ScriptOf }) {
  const { t } = useTranslation();
  const [side, setSide] = useState(first.side);
  const chosen = choices.find((one) => one.side === side) ?? first;
  return (
    <div className={classes.body} data-testid="reproduce-dialog">
      {choices.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label={t("reproduce.side")}
          value={chosen.side ?? ""}
          onChange={(value) => setSide(value as ScriptOf["side"])}
          data={choices.map((one) => ({ value: one.side ?? "", label: t(`comparison.${one.side ?? "target"}`) }))}
        />
      )}
      <Script of={chosen} focused={chosen === first} />
    </div>
  );
}

/** focused: its copy button takes the focus, not what closes the dialog; the script of another side leaves it where it was chosen */
function Script({ of, focused }: { of: ScriptOf; focused: boolean }) {
  const { t } = useTranslation();
  const script = useScript(of.dump, of.unit, of.name);
  if (script.error) return <Failure problem={script.error} />;
  if (!script.data) return <Loading />;
  const { data } = script;
  const { text } = data;
  if (text === null)
    return (
      <p className={classes.what}>
        {t("reproduce.refused")} {say(data.refused ?? "", data.refused_said)}
      </p>
    );
  return (
    <>
      <p className={classes.what}>{t("reproduce.what", { name: data.name })}</p>
      <p className={classes.what}>
        {data.files > 0 ? t("reproduce.real", { count: data.files }) : data.tensors > 0 && t("reproduce.madeUp")}
      </p>
      <Notes notes={data.notes} said={data.notes_said} />
      <p className={classes.what}>
        {t("reproduce.run")}: <code>python {data.file} --matrix</code>
      </p>
      <div className={classes.actions}>
        <Button
          size="compact-sm"
          onClick={() => downloadText(data.file, text, "text/x-python")}
          data-testid="save-script"
        >
          {t("reproduce.save")}
        </Button>
        <CopyButton text={text} label={t("reproduce.copy")} focused={focused} />
      </div>
      <Archive of={of} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keys */}
      <pre className={classes.text} tabIndex={0} data-testid="script-text">
        {text}
      </pre>
    </>
  );
}

/** Sentences of the server, each with its phrases. */
function Notes({ notes, said }: { notes: readonly string[]; said?: readonly (readonly Phrase[] | null)[] }) {
  return notes.map((note, index) => (
    <p key={note} className={classes.what}>
      {say(note, said?.[index])}
    </p>
  ));
}

/** The archive for the operator's owner: what will be in it, and its size, before it is made. */
function Archive({ of }: { of: ScriptOf }) {
  const { t } = useTranslation();
  const told = useArchiveContents(of);
  const archive = useMakeArchive();
  if (told.error) return <Failure problem={told.error} />;
  if (!told.data) return <Loading />;
  const { file, parts, bytes, made_up, mind, mind_said } = told.data;
  const size = { total: formatCount(parts.length), size: formatBytes(bytes) };
  return (
    <section className={classes.archive} aria-label={t("reproduce.archive")} data-testid="handover">
      <div className={classes.actions}>
        <Button
          size="compact-sm"
          variant="default"
          loading={archive.isPending}
          onClick={() => archive.mutate(of, { onSuccess: (content) => saveBlob(file, content) })}
          data-testid="save-archive"
        >
          {t("reproduce.archiveSave")}
        </Button>
        <span className="num">{t("reproduce.archiveSize", size)}</span>
      </div>
      {archive.error && <Failure problem={archive.error} />}
      {made_up && <p className={classes.what}>{t("reproduce.archiveMadeUp")}</p>}
      <details>
        <summary>{t("reproduce.archiveParts")}</summary>
        <ul className={classes.parts} data-testid="handover-parts">
          {parts.map((part) => (
            <li key={part.name}>
              <span className="mono">{part.name}</span> <span className="num dim">{formatBytes(part.bytes)}</span>
            </li>
          ))}
        </ul>
        <Notes notes={mind} said={mind_said} />
      </details>
    </section>
  );
}
