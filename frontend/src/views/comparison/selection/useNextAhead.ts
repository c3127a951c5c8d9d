/** The next suspect, read before its key: `n` leads from one to the next, and the page has nothing else to do meanwhile. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { nodeOptions } from "../../../api/comparison/nodes";
import { IN_FILE } from "../../../base/inFile";
import { whole } from "../../../widgets/late/painted";
import { atRest } from "../../../widgets/late/rest";
import { useOriginWalk, useSuspects } from "./OriginsProvider";
import { useShownComparison } from "./result";
import { useSelection, useShownCalls } from "./SelectionProvider";

/** Where the selected call is a suspect: its call in full, and the rows around it. */
export function useNextAhead(): void {
  const client = useQueryClient();
  const { id } = useShownComparison();
  const { unit, selected } = useSelection();
  const { suspects } = useSuspects();
  const { nextSuspect } = useOriginWalk();
  const { expect } = useShownCalls();
  // biome-ignore lint/correctness/useExhaustiveDependencies: which one is next follows from the suspects and the selected call
  useEffect(() => {
    let callOff: (() => void) | null = null;
    let gone = false;
    const read = () => {
      const next = nextSuspect();
      if (!unit || !next?.address || next.step !== unit.step || next.rank !== unit.rank) return;
      void client.prefetchQuery(nodeOptions(id, unit, next.address));
      expect(next.address);
    };
    if (!IN_FILE)
      void whole.then(() => {
        if (!gone) callOff = atRest(read);
      });
    return () => {
      gone = true;
      callOff?.();
    };
  }, [client, id, unit, selected, suspects, nextSuspect, expect]);
}
