/** The sections of the evidence column, from top to bottom. A new one is a component, a line here, and its texts. */
import type { ComponentType } from "react";
import type { PanelKey } from "../../../base/address/keys";
import { FlowPanel } from "./FlowPanel";
import { InputsPanel } from "./InputsPanel";
import { PrecheckBox, PrecheckUnasked } from "./PrecheckBox";
import { RanksPanel } from "./RanksPanel";
import { StackPanel } from "./StackPanel";
import type { SectionProps } from "./sectionProps";

export interface SectionEntry extends Omit<PanelKey, "key"> {
  /** Scrolls to the element `section-ID`; none: the section has no key. */
  key?: string;
  Section: ComponentType<SectionProps>;
  /** Made anew for each call, so that nothing opened in it stays open. */
  fresh?: boolean;
}

export const SECTIONS: readonly SectionEntry[] = [
  { id: "precheck", Section: PrecheckBox, fresh: true },
  { id: "stack", key: "s", Section: StackPanel },
  { id: "inputs", key: "i", Section: InputsPanel },
  { id: "ranks", Section: RanksPanel },
  { id: "unasked", Section: PrecheckUnasked, fresh: true },
  { id: "flow", key: "d", help: "flowSection", Section: FlowPanel, fresh: true },
];
