/** What can be opened over the triage screen. A new dialog is a line here, its component in DialogSet, and its texts. */
import type { PanelKey } from "../../../base/address/keys";
import { IN_FILE } from "../../../base/inFile";
import { REPRODUCE_KEY, SOURCE_KEY } from "../../../widgets/source/dialogKeys";

export interface DialogEntry extends Omit<PanelKey, "key"> {
  /** `do` in the address is the id. None: no key opens it. */
  key?: string;
  /** It is about the selected call, so its key does nothing before there is one. */
  ofCall?: boolean;
  /** It is no dialog: the evidence column shows it. */
  inline?: boolean;
  /** It needs no server, so a page in a file has it too. */
  inFile?: boolean;
}

const ALL: readonly DialogEntry[] = [
  { ...SOURCE_KEY, ofCall: true, inFile: true },
  { id: "match", key: "m", ofCall: true },
  { id: "matches", key: "M" },
  { id: "assist", key: "a" },
  { id: "note", key: "v", ofCall: true, inline: true },
  { ...REPRODUCE_KEY, ofCall: true },
  { id: "policy", key: "t" },
  { id: "trends", inFile: true },
  { id: "ranks", inFile: true },
  { id: "plan" },
];

export const DIALOGS: readonly DialogEntry[] = IN_FILE ? ALL.filter(({ inFile }) => inFile) : ALL;
