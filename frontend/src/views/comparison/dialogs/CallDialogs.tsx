import type { Unit } from "../../../api/records";
import type { Comparison, NodeDetail } from "../../../api/types";
import { onlySide } from "../../../base/comparison/unmatched";
import { ReproduceDialog, type ScriptOf } from "../../../widgets/source/ReproduceDialog";
import { SourceDialog, type SourceOf } from "../../../widgets/source/SourceDialog";
import { useShownComparison } from "../selection/result";
import { useSelectedCall, useSelection } from "../selection/SelectionProvider";
import type { DialogProps } from "./dialogProps";

/** The lines of code behind the selected call, in both runs. */
export function CallSource(props: DialogProps) {
  const { node } = useSelectedCall();
  const only = node && onlySide(node);
  const sides: SourceOf[] = [];
  if (node && only !== "golden")
    sides.push({ side: "target", stack: { texts: node.target_stack, frames: node.target_frames } });
  if (node && only !== "target")
    sides.push({ side: "golden", stack: { texts: node.golden_stack, frames: node.golden_frames } });
  return <SourceDialog {...props} sides={sides} />;
}

/** The script that runs the selected call alone, of both runs. */
export function CallScript(props: DialogProps) {
  const comparison = useShownComparison();
  const { unit } = useSelection();
  const { node } = useSelectedCall();
  return <ReproduceDialog {...props} choices={node && unit ? listScripts(comparison, node, unit) : []} />;
}

function listScripts(comparison: Comparison, node: NodeDetail, unit: Unit): ScriptOf[] {
  const only = onlySide(node);
  const golden = node.golden_name ?? node.name;
  const of = { unit, comparison: comparison.id };
  return [
    ...(only === "golden" ? [] : [{ side: "target" as const, dump: comparison.target, name: node.name, ...of }]),
    ...(only === "target" ? [] : [{ side: "golden" as const, dump: comparison.golden, name: golden, ...of }]),
  ];
}
