import { Button, SegmentedControl, Textarea } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { STANDINGS, type Standing, useWriteNote } from "../../../api/comparison/notes";
import type { NodeDetail, NodeNote } from "../../../api/types";
import { IN_FILE } from "../../../base/inFile";
import { useTranslation } from "../../../texts/useTranslation";
import { Failure } from "../../../widgets/basic/States";
import { NoteChip } from "../../../widgets/marks/Mark";
import { useResult, useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./NoteBox.module.css";

/** The note on the selected call, and the form to write one. */
export function NoteBox({ node }: { node: NodeDetail }) {
  const { notes } = useResult();
  const { address } = useSelection();
  const note = notes.get(node.name);
  if (address.dialog === "note" && !IN_FILE) return <NoteForm key={node.name} node={node} held={note} />;
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

function NoteForm({ node, held }: { node: NodeDetail; held: NodeNote | undefined }) {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { update } = useSelection();
  const [standing, setStanding] = useState<Standing>(held?.standing ?? "note");
  const [text, setText] = useState(held?.text ?? "");
  const say = useWriteNote(id, node.name);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const close = () => update({ dialog: null }, true);
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
