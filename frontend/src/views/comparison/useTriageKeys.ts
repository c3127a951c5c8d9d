/** The keys of the triage screen. */
import { isFiltered, PLOTS, toPlot } from "../../base/address/address";
import { IN_FILE } from "../../base/inFile";
import { currentAddress } from "../../widgets/basic/navigation";
import { type PanelCommand, useKeys } from "../../widgets/basic/useKeys";
import { DIALOGS } from "./dialogs/dialogs";
import { useOriginWalk } from "./selection/OriginsProvider";
import { useResult } from "./selection/result";
import { useSelection } from "./selection/SelectionProvider";
import { useCallWalk } from "./selection/useCallWalk";
import { useCopyLink } from "./selection/useCopyLink";
import { useGraphWalk } from "./selection/useGraphWalk";

export function useTriageKeys(): void {
  const { steps, ranks } = useResult();
  const { address, update, unit, selected, clearFilter } = useSelection();
  const { move, moveToBad } = useCallWalk();
  const { moveSuspect, moveToFirstOrigin } = useOriginWalk();
  const { moveToProducer, moveToConsumer, moveToParent } = useGraphWalk();
  const copyLink = useCopyLink();

  const cycle = (key: "step" | "rank", values: readonly number[], delta: 1 | -1) => {
    const next = values[values.indexOf(unit?.[key] ?? 0) + delta];
    if (next !== undefined) update({ [key]: next });
  };
  const plot = (index: number) => () => {
    const tab = PLOTS[index];
    if (tab) update(toPlot(address, tab));
  };
  const stages: PanelCommand[] = [
    { id: "path", key: "w", run: () => update({ stage: currentAddress().stage === "path" ? null : "path" }) },
  ];
  const dialogs = DIALOGS.flatMap(({ id, key, help, ofCall }): PanelCommand[] =>
    key === undefined ? [] : [{ id, key, help, run: () => (!ofCall || selected !== null) && update({ dialog: id }) }],
  );
  useKeys(
    {
      nextNode: () => void move(1),
      previousNode: () => void move(-1),
      nextBad: () => void moveToBad(1),
      previousBad: () => void moveToBad(-1),
      nextOrigin: () => moveSuspect(1),
      previousOrigin: () => moveSuspect(-1),
      firstOrigin: moveToFirstOrigin,
      producer: () => void moveToProducer(),
      consumer: () => void moveToConsumer(),
      parent: () => void moveToParent(),
      previousRank: () => cycle("rank", ranks, -1),
      nextRank: () => cycle("rank", ranks, 1),
      previousStep: () => cycle("step", steps, -1),
      nextStep: () => cycle("step", steps, 1),
      plot1: plot(0),
      plot2: plot(1),
      plot3: plot(2),
      plot4: plot(3),
      plot5: plot(4),
      plot6: plot(5),
      plot7: plot(6),
      plot8: plot(7),
      plot9: plot(8),
      ...(IN_FILE ? {} : { copyLink: () => void copyLink() }),
      escape: () => {
        const now = currentAddress();
        if (now.dialog !== null) update({ dialog: null }, true);
        else if (now.stage !== null) update({ stage: null });
        else if (isFiltered(now)) clearFilter();
      },
    },
    [...stages, ...dialogs],
    (digit) => {
      const tab = PLOTS[digit - 1];
      if (tab) update({ ...toPlot(address, tab), stage: "plot" });
    },
  );
}
