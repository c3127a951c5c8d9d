import { Modal } from "@mantine/core";
import type { ComponentType } from "react";
import type { TextKey } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { PlanDialog } from "../plan/PlanEdit";
import { useSelection } from "../selection/SelectionProvider";
import { Assistant } from "./Assistant";
import { CallScript, CallSource } from "./CallDialogs";
import type { DialogProps } from "./dialogProps";
import { Matches } from "./Matches";
import { MatchSearch } from "./MatchSearch";
import { Policies } from "./Policies";
import { RankMap } from "./RankMap";
import { Trends } from "./Trends";

/** Dialogs in a frame with this title, by their ids. */
const FRAMED: Readonly<Record<string, { title: TextKey; size: "lg" | "xl" | "auto"; Body: ComponentType }>> = {
  match: { title: "matching.title", size: "lg", Body: MatchSearch },
  matches: { title: "matching.list", size: "xl", Body: Matches },
  assist: { title: "assistant.title", size: "xl", Body: Assistant },
  policy: { title: "policy.title", size: "lg", Body: Policies },
  trends: { title: "trends.title", size: "auto", Body: Trends },
  ranks: { title: "trends.ranksTitle", size: "auto", Body: RankMap },
};

/** Dialogs with a frame of their own. */
const OWN: Readonly<Record<string, ComponentType<DialogProps>>> = {
  source: CallSource,
  reproduce: CallScript,
  plan: PlanDialog,
};

/** The dialog that the address names. */
export function DialogSet() {
  const { t } = useTranslation();
  const { address, update } = useSelection();
  const onClose = () => update({ dialog: null });
  return (
    <>
      {Object.entries(FRAMED).map(([id, { title, size, Body }]) => (
        <Modal
          key={id}
          opened={address.dialog === id}
          onClose={onClose}
          title={t(title)}
          size={size}
          closeButtonProps={{ "aria-label": t("app.close") }}
        >
          <Body />
        </Modal>
      ))}
      {Object.entries(OWN).map(([id, Dialog]) => (
        <Dialog key={id} opened={address.dialog === id} onClose={onClose} />
      ))}
    </>
  );
}
