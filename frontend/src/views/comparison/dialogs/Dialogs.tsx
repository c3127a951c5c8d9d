import { Modal } from "@mantine/core";
import { useTranslation } from "../../../texts/useTranslation";
import { useSelection } from "../selection/SelectionProvider";
import { DIALOGS } from "./dialogs";

/** The dialog that the address names, if any. */
export function Dialogs() {
  const { t } = useTranslation();
  const { address, update } = useSelection();
  const onClose = () => update({ dialog: null });
  return DIALOGS.map(({ id, framed, Dialog }) => {
    const opened = address.dialog === id;
    if (Dialog) return <Dialog key={id} opened={opened} onClose={onClose} />;
    if (!framed) return null;
    return (
      <Modal
        key={id}
        opened={opened}
        onClose={onClose}
        title={t(framed.title)}
        size={framed.size}
        closeButtonProps={{ "aria-label": t("app.close") }}
      >
        <framed.Body />
      </Modal>
    );
  });
}
