/** The selection a moment later: a key moves the cursor at once, and the panels around it follow as soon as the call is read. */
import { createContext, type ReactNode, startTransition, useEffect, useRef, useState } from "react";
import { useNode } from "../../../api/comparison/nodes";
import { untilReading } from "../../../widgets/late/rest";
import { useRequired } from "./required";
import { useShownComparison } from "./result";
import { type Selection, SelectionContext, useSelection } from "./SelectionProvider";

const FollowingContext = createContext<Selection | null>(null);
const AroundContext = createContext<Selection | null>(null);
const NowContext = createContext<Selection | null>(null);

/** The selection as it is, also inside of `Following`. */
export function useSelectionNow(): Selection {
  return useRequired(NowContext);
}

/** Reads the selected call, those that a walk passes left out, and lets the panels in `Following` have it when it is here. */
export function FollowingProvider({ children }: { children: ReactNode }) {
  const { id } = useShownComparison();
  const now = useSelection();
  const [read, setRead] = useState(now);
  const [shown, setShown] = useState(now);
  useEffect(() => {
    // What is chosen of the same call, such as a plot, waits for nothing that must be read.
    const wait = now.unit === read.unit && now.selected === read.selected ? 0 : untilReading();
    if (wait === 0) {
      setRead(now);
      return;
    }
    const timer = setTimeout(() => setRead(now), wait);
    return () => clearTimeout(timer);
  }, [now, read]);
  const asked = read.selected === null ? now : read; // the first one at once: scripts that come behind the answer would go before it
  const { data, error, isPlaceholderData } = useNode(id, asked.unit, asked.selected);
  const here = (data !== undefined && !isPlaceholderData) || error !== null;
  const begun = useRef(false);
  useEffect(() => {
    if (here) begun.current = true;
    if (here || !begun.current) startTransition(() => setShown(read)); // at first there is nothing that could stay
  }, [read, here]);
  // Put on the screen in two goes: a key that comes in between waits for half of it.
  const [around, setAround] = useState(shown);
  useEffect(() => startTransition(() => setAround(shown)), [shown]);
  return (
    <NowContext value={now}>
      <FollowingContext value={shown}>
        <AroundContext value={around}>{children}</AroundContext>
      </FollowingContext>
    </NowContext>
  );
}

/**
 * What is inside takes the selection from `useSelection` when its call is read, and is drawn between keys.
 *
 * around: it shows where the call lies, and comes behind what the call itself says
 */
export function Following({ around = false, children }: { around?: boolean; children: ReactNode }) {
  const [shown, behind] = [useRequired(FollowingContext), useRequired(AroundContext)];
  return <SelectionContext value={around ? behind : shown}>{children}</SelectionContext>;
}
