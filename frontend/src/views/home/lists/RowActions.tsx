import { ActionIcon, Button, Group, Modal, TextInput, Tooltip } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useDelete, useRename } from "../../../api/changes";
import type { Noun } from "../../../api/records";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { Failure } from "../../../widgets/basic/States";
import classes from "../HomeView.module.css";

interface RowActionsProps {
  noun: Noun;
  id: string;
  name: string;
  /** The name as the list shows it, where that differs. */
  label?: string;
}

/** Rename and delete, the second only after a question. */
export function RowActions({ noun, id, name, label = name }: RowActionsProps) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const [text, setText] = useState(name);
  const rename = useRename(noun);
  const remove = useDelete(noun);
  const close = () => {
    setDialog(null);
    rename.reset();
    remove.reset();
  };
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) rename.mutate({ id, name: text.trim() }, { onSuccess: close });
  };
  return (
    <span className={classes.actions}>
      <Tooltip label={t("app.rename")}>
        <ActionIcon
          size="sm"
          aria-label={`${t("app.rename")}: ${label}`}
          onClick={() => {
            setText(name);
            setDialog("rename");
          }}
        >
          <Icon name="pencil" size={12} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={t("app.delete")}>
        <ActionIcon size="sm" aria-label={`${t("app.delete")}: ${label}`} onClick={() => setDialog("delete")}>
          <Icon name="trash" size={12} />
        </ActionIcon>
      </Tooltip>
      <Modal
        opened={dialog === "rename"}
        onClose={close}
        title={t("app.rename")}
        closeButtonProps={{ "aria-label": t("app.close") }}
      >
        <form onSubmit={save}>
          <TextInput
            aria-label={t("home.columns.name")}
            value={text}
            data-autofocus
            onChange={(event) => setText(event.currentTarget.value)}
          />
          {rename.error && <Failure problem={rename.error} />}
          <Group justify="flex-end" mt="sm">
            <Button variant="default" onClick={close}>
              {t("app.cancel")}
            </Button>
            <Button type="submit" loading={rename.isPending} disabled={text.trim() === ""}>
              {t("app.save")}
            </Button>
          </Group>
        </form>
      </Modal>
      <Modal
        opened={dialog === "delete"}
        onClose={close}
        title={t(noun === "dumps" ? "home.deleteDump" : "home.deleteComparison", { name: label })}
        closeButtonProps={{ "aria-label": t("app.close") }}
        styles={{ title: { overflowWrap: "anywhere" } }}
      >
        <p className="dim">{t("home.deleteHint")}</p>
        {remove.error && <Failure problem={remove.error} />}
        <Group justify="flex-end" mt="sm">
          <Button variant="default" onClick={close} data-autofocus>
            {t("app.cancel")}
          </Button>
          <Button color="red" loading={remove.isPending} onClick={() => remove.mutate(id, { onSuccess: close })}>
            {t("app.delete")}
          </Button>
        </Group>
      </Modal>
    </span>
  );
}
