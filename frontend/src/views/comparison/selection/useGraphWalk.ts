/** Ways from the selected call along the data flow and up the module tree. */
import { useQueryClient } from "@tanstack/react-query";
import { fetchFlow, nodeOptions } from "../../../api/comparison/nodes";
import type { Flow } from "../../../api/types";
import { findConsumer, findProducer } from "../../../base/comparison/flowSteps";
import { isBad } from "../../../base/comparison/verdicts";
import { useTranslation } from "../../../texts/useTranslation";
import { currentAddress } from "../../../widgets/basic/navigation";
import { describeProblem } from "../../../widgets/basic/States";
import { useSay } from "./notice";
import { useShownComparison } from "./result";
import { useSelection } from "./SelectionProvider";

export interface GraphWalk {
  moveToProducer: () => Promise<void>;
  moveToConsumer: () => Promise<void>;
  moveToParent: () => Promise<void>;
}

export function useGraphWalk(): GraphWalk {
  const { t } = useTranslation();
  const client = useQueryClient();
  const say = useSay();
  const { id } = useShownComparison();
  const { unit, selected, select, update } = useSelection();

  const follow = async (go: (flow: Flow) => void) => {
    if (!unit || !selected) return;
    try {
      go(await fetchFlow(client, id, unit, selected));
    } catch (problem) {
      say(describeProblem(problem).detail);
    }
  };
  const moveToProducer = () =>
    follow((flow) => {
      const next = findProducer(flow, isBad);
      if (!next) return say(t(isBad(flow.node.cls) ? "evidence.flow.begins" : "evidence.flow.notMade"));
      const rank = flow.source?.rank;
      if (typeof rank === "number") update({ rank, node: next });
      else select(next);
    });
  const moveToConsumer = () =>
    follow((flow) => {
      const next = findConsumer(flow, isBad);
      if (next) select(next);
      else say(t("evidence.flow.notPassed"));
    });
  // The key may be pressed before the selected call is loaded: it is waited for then.
  const moveToParent = async () => {
    if (selected === null) return;
    const here = await client.ensureQueryData(nodeOptions(id, unit, selected)).catch(() => null);
    const parent = here?.path.at(-1);
    if (parent && (currentAddress().node ?? selected) === selected) select(parent);
  };
  return { moveToProducer, moveToConsumer, moveToParent };
}
