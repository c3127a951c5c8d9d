/** Keys of the dialogs about a call, on every screen that shows calls; apart from them, so that a key needs no dialog. */
import type { PanelKey } from "../../base/address/keys";

export const REPRODUCE_KEY: PanelKey = { id: "reproduce", key: "r" };
export const SOURCE_KEY: PanelKey = { id: "source", key: "o" };
