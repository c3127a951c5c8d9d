/** The origin that the banner shows, and the way to the next suspect: the other origins, then the strongest amplifiers. */
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useEffect, useState } from "react";
import { amplifierOptions } from "../../../api/comparison/nodes";
import type { NodeRow, Origin } from "../../../api/types";
import { formatError } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { useSay } from "./notice";
import { useRequired } from "./required";
import { firstOpenOrigin, useResult, useShownComparison } from "./result";
import { useSelection } from "./SelectionProvider";

export interface OriginWalk {
  /** Index of the origin shown in the banner. */
  originIndex: number;
  moveOrigin: (delta: 1 | -1) => void;
  /** On to the next origin, behind the last one to the amplifiers of this step and rank, then to the first origin again. */
  moveSuspect: (delta: 1 | -1) => Promise<void>;
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
  const { id } = useShownComparison();
  const client = useQueryClient();
  const { selected, unit, select, showOrigin } = useSelection();
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
  const showAmplifier = (row: NodeRow, at: number, of: number) => {
    select(row.address);
    const errors = { in: formatError(row.in_error, row.in_score), out: formatError(row.out_error, row.out_score) };
    say(t("comparison.amplifierAt", { at, of, ...errors }));
  };
  const moveSuspect = async (delta: 1 | -1) => {
    const rows = unit ? (await client.fetchQuery(amplifierOptions(id, unit))).items : [];
    const amplifier = rows.findIndex((row) => row.address === selected);
    const total = origins.length + rows.length;
    if (total === 0 || (total === 1 && here === 0)) return say(t("comparison.noOtherSuspect"));
    const place = amplifier >= 0 && here < 0 ? origins.length + amplifier : originIndex;
    const next = origins.length === 0 && amplifier < 0 ? 0 : (place + delta + total) % total;
    const row = rows[next - origins.length];
    return row ? showAmplifier(row, next - origins.length + 1, rows.length) : moveTo(next);
  };
  const walk = {
    originIndex,
    moveOrigin: (delta: 1 | -1) => moveTo((originIndex + delta + origins.length) % origins.length),
    moveSuspect,
    moveToFirstOrigin: () => moveTo(open),
  };
  return <OriginContext value={walk}>{children}</OriginContext>;
}
