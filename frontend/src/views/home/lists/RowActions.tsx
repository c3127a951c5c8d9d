import { ActionIcon, Button, Group, Modal, TextInput } from "@mantine/core";
import { type FormEvent, type MouseEvent, useState } from "react";
import { useDelete, useRename } from "../../../api/changes";
import type { Noun } from "../../../api/records";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { Failure } from "../../../widgets/basic/States";
import { useOpener } from "../../../widgets/late/useOpener";
import classes from "../HomeView.module.css";

interface RowActionsProps {
  noun: Noun;
  id: string;
  name: string;
  /** The name as the list shows it, where that differs. */
  label?: string;
}

/** Rename and delete, the second only after a question. A list has a hundred of them: the dialogs are there while they are open. */
export function RowActions({ noun, id, name, label = name }: RowActionsProps) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const remember = useOpener(dialog !== null);
  const close = () => setDialog(null);
  const opening = (which: "rename" | "delete") => (click: MouseEvent<HTMLElement>) => {
    remember(click);
    setDialog(which);
  };
  return (
    <span className={classes.actions}>
      <ActionIcon
        size="sm"
        title={t("app.rename")}
        aria-label={`${t("app.rename")}: ${label}`}
        onClick={opening("rename")}
      >
        <Icon name="pencil" size={12} />
      </ActionIcon>
      <ActionIcon
        size="sm"
        title={t("app.delete")}
        aria-label={`${t("app.delete")}: ${label}`}
        onClick={opening("delete")}
      >
        <Icon name="trash" size={12} />
      </ActionIcon>
      {dialog === "rename" && <RenameDialog noun={noun} id={id} name={name} onClose={close} />}
      {dialog === "delete" && <DeleteDialog noun={noun} id={id} name={label} onClose={close} />}
    </span>
  );
}

interface DialogProps {
  noun: Noun;
  id: string;
  name: string;
  onClose: () => void;
}

function RenameDialog({ noun, id, name, onClose }: DialogProps) {
  const { t } = useTranslation();
  const [text, setText] = useState(name);
  const rename = useRename(noun);
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) rename.mutate({ id, name: text.trim() }, { onSuccess: onClose });
  };
  return (
    <Modal opened onClose={onClose} title={t("app.rename")} closeButtonProps={{ "aria-label": t("app.close") }}>
      <form onSubmit={save}>
        <TextInput
          aria-label={t("home.columns.name")}
          value={text}
          data-autofocus
          onChange={(event) => setText(event.currentTarget.value)}
        />
        {rename.error && <Failure problem={rename.error} />}
        <Group justify="flex-end" mt="sm">
          <Button variant="default" onClick={onClose}>
            {t("app.cancel")}
          </Button>
          <Button type="submit" loading={rename.isPending} disabled={text.trim() === ""}>
            {t("app.save")}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}

function DeleteDialog({ noun, id, name, onClose }: DialogProps) {
  const { t } = useTranslation();
  const remove = useDelete(noun);
  return (
    <Modal
      opened
      onClose={onClose}
      title={t(noun === "dumps" ? "home.deleteDump" : "home.deleteComparison", { name })}
      closeButtonProps={{ "aria-label": t("app.close") }}
      styles={{ title: { overflowWrap: "anywhere" } }}
    >
      <p className="dim">{t("home.deleteHint")}</p>
      {remove.error && <Failure problem={remove.error} />}
      <Group justify="flex-end" mt="sm">
        <Button variant="default" onClick={onClose} data-autofocus>
          {t("app.cancel")}
        </Button>
        <Button color="red" loading={remove.isPending} onClick={() => remove.mutate(id, { onSuccess: onClose })}>
          {t("app.delete")}
        </Button>
      </Group>
    </Modal>
  );
}
