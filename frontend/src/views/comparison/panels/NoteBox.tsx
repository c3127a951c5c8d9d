import { Button, SegmentedControl, Textarea } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { STANDINGS, type Standing, useSayNote } from "../../../api/comparison/notes";
import type { NodeDetail } from "../../../api/types";
import { Failure } from "../../../widgets/basic/States";
import { NoteChip } from "../../../widgets/marks/Mark";
import type { Triage } from "../useTriage";
import classes from "./NoteBox.module.css";

/** What was said of the selected call, and the form to say it. */
export function NoteBox({ comparison, node, triage }: { comparison: string; node: NodeDetail; triage: Triage }) {
  const note = triage.notes.get(node.name);
  const open = triage.address.dialog === "note";
  if (open) return <NoteForm key={node.name} comparison={comparison} node={node} triage={triage} />;
  if (!note) return null;
  return (
    <p className={classes.note} data-testid="note">
      <NoteChip standing={note.standing} />
      <span className={classes.text}>{note.text}</span>
      <time className="dim" dateTime={note.changed}>
        {new Date(note.changed).toLocaleDateString()}
      </time>
    </p>
  );
}

function NoteForm({ comparison, node, triage }: { comparison: string; node: NodeDetail; triage: Triage }) {
  const { t } = useTranslation();
  const held = triage.notes.get(node.name);
  const [standing, setStanding] = useState<Standing>(held?.standing ?? "accepted");
  const [text, setText] = useState(held?.text ?? "");
  const say = useSayNote(comparison, node.name);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const close = () => triage.update({ dialog: null }, true);
  const save = (note: { standing: Standing; text: string } | null) => say.mutate(note, { onSuccess: close });
  return (
    <form
      className={classes.form}
      aria-label={t("notes.title")}
      data-testid="note-form"
      onSubmit={(event) => {
        event.preventDefault();
        save({ standing, text: text.trim() });
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          close();
        }
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
      }}
    >
      <SegmentedControl
        size="xs"
        aria-label={t("notes.standing")}
        data={STANDINGS.map((word) => ({ value: word, label: t(`notes.standings.${word}`) }))}
        value={standing}
        onChange={(word) => setStanding(word as Standing)}
      />
      <span className="dim">{t(`notes.help.${standing}`)}</span>
      <Textarea
        ref={field}
        aria-label={t("notes.text")}
        placeholder={t(standing === "ticket" ? "notes.ticketHint" : "notes.text")}
        autosize
        minRows={1}
        maxRows={6}
        maxLength={2000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        data-testid="note-text"
      />
      <div className={classes.buttons}>
        <Button type="submit" size="compact-xs" loading={say.isPending} data-testid="save-note">
          {t("notes.save")}
        </Button>
        <Button type="button" variant="default" size="compact-xs" onClick={close}>
          {t("notes.cancel")}
        </Button>
        {held && (
          <Button
            type="button"
            variant="subtle"
            color="red"
            size="compact-xs"
            onClick={() => save(null)}
            data-testid="delete-note"
          >
            {t("notes.delete")}
          </Button>
        )}
        <span className="dim">{t("notes.kept")}</span>
      </div>
      {say.error && <Failure problem={say.error} />}
    </form>
  );
}
