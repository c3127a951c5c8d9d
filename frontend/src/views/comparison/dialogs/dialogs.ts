/** What can be opened over the triage screen. A new dialog is a component, a line here, and its texts. */

import type { ComponentType } from "react";
import type { PanelKey } from "../../../base/address/keys";
import type { TextKey } from "../../../texts/translation";
import { REPRODUCE_KEY } from "../../../widgets/source/ReproduceDialog";
import { SOURCE_KEY } from "../../../widgets/source/SourceDialog";
import { PlanDialog } from "../plan/PlanNotes";
import { Assistant } from "./Assistant";
import { CallScript, CallSource } from "./CallDialogs";
import type { DialogProps } from "./dialogProps";
import { Matches } from "./Matches";
import { MatchSearch } from "./MatchSearch";
import { Policies } from "./Policies";
import { RankMap } from "./RankMap";
import { Trends } from "./Trends";

export interface DialogEntry extends Omit<PanelKey, "key"> {
  /** `do` in the address is the id. None: no key opens it. */
  key?: string;
  /** It is about the selected call, so its key does nothing before there is one. */
  ofCall?: boolean;
  /** In a frame with this title, or with a frame of its own; neither: the note, which the evidence column shows. */
  framed?: { title: TextKey; size: "lg" | "xl" | "auto"; Body: ComponentType };
  Dialog?: ComponentType<DialogProps>;
}

export const DIALOGS: readonly DialogEntry[] = [
  { ...SOURCE_KEY, ofCall: true, Dialog: CallSource },
  { id: "match", key: "m", ofCall: true, framed: { title: "matching.title", size: "lg", Body: MatchSearch } },
  { id: "matches", key: "M", framed: { title: "matching.list", size: "xl", Body: Matches } },
  { id: "assist", key: "a", framed: { title: "assistant.title", size: "xl", Body: Assistant } },
  { id: "note", key: "v", ofCall: true },
  { ...REPRODUCE_KEY, ofCall: true, Dialog: CallScript },
  { id: "policy", key: "t", framed: { title: "policy.title", size: "lg", Body: Policies } },
  { id: "trends", framed: { title: "trends.title", size: "auto", Body: Trends } },
  { id: "ranks", framed: { title: "trends.ranksTitle", size: "auto", Body: RankMap } },
  { id: "plan", Dialog: PlanDialog },
];
