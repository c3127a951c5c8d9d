/** The origin that the banner shows, and the way to the next one. */
import { createContext, type ReactNode, useEffect, useState } from "react";
import type { Origin } from "../../../api/types";
import { useTranslation } from "../../../texts/useTranslation";
import { useSay } from "./notice";
import { useRequired } from "./required";
import { firstOpenOrigin, useResult } from "./result";
import { useSelection } from "./SelectionProvider";

export interface OriginWalk {
  /** Index of the origin shown in the banner. */
  originIndex: number;
  moveOrigin: (delta: 1 | -1) => void;
  moveToFirstOrigin: () => void;
}

const OriginContext = createContext<OriginWalk | null>(null);

export function useOriginWalk(): OriginWalk {
  return useRequired(OriginContext);
}

export function OriginsProvider({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const say = useSay();
  const { origins, notes } = useResult();
  const { selected, unit, showOrigin } = useSelection();
  // The origin visited last stays in the banner while the user looks at the calls around it.
  const [visited, setVisited] = useState<number | null>(null);
  const isSelected = (origin: Origin) =>
    origin.node === selected && origin.step === unit?.step && origin.rank === unit?.rank;
  // One call may be the origin of several causes: the one visited last stays.
  const last = visited === null ? undefined : origins[visited];
  const here = last && isSelected(last) ? (visited ?? -1) : origins.findIndex(isSelected);
  useEffect(() => {
    if (here >= 0) setVisited(here);
  }, [here]);
  const open = firstOpenOrigin(origins, notes);
  const originIndex = here >= 0 ? here : Math.min(visited ?? open, Math.max(0, origins.length - 1));

  const moveTo = (index: number) => {
    const origin = origins[index];
    if (!origin) return say(t("list.noMore"));
    setVisited(index);
    showOrigin(origin);
  };
  const walk = {
    originIndex,
    moveOrigin: (delta: 1 | -1) => moveTo((originIndex + delta + origins.length) % origins.length),
    moveToFirstOrigin: () => moveTo(open),
  };
  return <OriginContext value={walk}>{children}</OriginContext>;
}
