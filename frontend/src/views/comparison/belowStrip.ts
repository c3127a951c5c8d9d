/** What lies below the strip; one script, which comes behind the answer. */

export { PanelSwitch } from "./PanelSwitch";
export { EvidencePanel } from "./panels/EvidencePanel";
export { ListPanel } from "./panels/ListPanel";
export { TreePanel } from "./panels/TreePanel";
