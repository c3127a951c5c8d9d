import { useState } from "react";
import { lazyPart } from "../../../widgets/late/lazyPart";
import { useSelection } from "../selection/SelectionProvider";
import { DIALOGS } from "./dialogs";

/** All dialogs of the screen: their script comes when one is opened, or at rest. */
export const DialogSet = lazyPart(async () => (await import("./DialogSet")).DialogSet, { overlay: true, late: true });

/** The dialog that the address names, if any. */
export function Dialogs() {
  const { address } = useSelection();
  const wanted = DIALOGS.some(({ id, inline }) => id === address.dialog && !inline);
  const [used, setUsed] = useState(false);
  if (wanted && !used) setUsed(true);
  return (wanted || used) && <DialogSet />;
}
