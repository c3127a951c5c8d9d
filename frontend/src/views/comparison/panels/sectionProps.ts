import type { NodeDetail } from "../../../api/types";

/** What a section of the evidence column gets: the selected call. All else is read from the hooks of `selection`. */
export interface SectionProps {
  node: NodeDetail;
}
