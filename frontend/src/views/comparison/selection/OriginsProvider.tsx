/** The origin that the banner shows, and the way along the suspects. */
import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  useCallback,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { suspectsOptions, useSuspectList } from "../../../api/comparison/suspects";
import type { Origin, Suspect, Suspects } from "../../../api/types";
import { recurs } from "../../../base/comparison/verdicts";
import { formatError } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { RepeatsContext } from "../../../widgets/marks/Mark";
import { useSay } from "./notice";
import { useRequired } from "./required";
import { firstOpenOrigin, useResult, useShownComparison } from "./result";
import { useSelection } from "./SelectionProvider";

export interface OriginWalk {
  /** Index of the origin shown in the banner. */
  originIndex: number;
  moveOrigin: (delta: 1 | -1) => void;
  /** On to the next suspect of the list, behind the last one to the first again. */
  moveSuspect: (delta: 1 | -1) => Promise<void>;
  moveToFirstOrigin: () => void;
  /** Where the selected call is a suspect, the one behind it. */
  nextSuspect: () => Suspect | null;
  showSuspect: (suspect: Suspect) => void;
}

interface Pointed {
  suspects: Suspects | undefined;
  /** Address of the call under the mouse or with the focus, in this step and rank; null: none. */
  pointed: string | null;
  point: (address: string | null) => void;
}

export interface ShownSuspect extends Pointed {
  /** Address of the suspect whose reach is shown: the pointed one, else the selected call where it is one; null: none. */
  shown: string | null;
}

const OriginContext = createContext<OriginWalk | null>(null);
/** A context of its own: it changes with the mouse. */
const SuspectContext = createContext<Pointed | null>(null);

export function useOriginWalk(): OriginWalk {
  return useRequired(OriginContext);
}

/** With the selection of the place that asks: what is inside of `Following` keeps the reach until the next call is read. */
export function useSuspects(): ShownSuspect {
  const found = useRequired(SuspectContext);
  const { selected, unit } = useSelection();
  const { suspects, pointed } = found;
  const isSelected = (one: Suspect) => one.address === selected && one.step === unit?.step && one.rank === unit?.rank;
  return { ...found, shown: pointed ?? callsOf(suspects).find(isSelected)?.address ?? null };
}

/** Suspects that are calls; a setting is none. */
export function callsOf(suspects: Suspects | undefined): Suspect[] {
  return (suspects?.items ?? []).filter((one) => one.address !== null);
}

/** Index of the origin that a suspect is, -1 where it is none. One call may be the origin of several causes, in the same order. */
function originOf(suspect: Suspect, suspects: readonly Suspect[], origins: readonly Origin[]): number {
  if (suspect.kind !== "origin" && suspect.kind !== "second") return -1;
  const isSame = (one: Origin | Suspect) =>
    one.node === suspect.node && one.step === suspect.step && one.rank === suspect.rank;
  const nth = suspects.filter((one) => isSame(one) && one.number < suspect.number).length;
  return origins.flatMap((origin, index) => (isSame(origin) ? [index] : []))[nth] ?? -1;
}

export function OriginsProvider({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const say = useSay();
  const { origins, notes } = useResult();
  const { id } = useShownComparison();
  const client = useQueryClient();
  const { selected, unit, update, showOrigin } = useSelection();
  const { data: suspects } = useSuspectList(id, unit);
  const [pointed, point] = useState<string | null>(null);
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
  const moveOrigin = (delta: 1 | -1) => moveTo((originIndex + delta + origins.length) % origins.length);
  const moveToFirstOrigin = () => moveTo(open);
  const isHere = (one: Suspect) => one.step === unit?.step && one.rank === unit?.rank;
  const isShown = (one: Suspect) => one.address === selected && isHere(one);
  const showSuspect = (one: Suspect) => {
    const index = originOf(one, callsOf(suspects), origins);
    if (index >= 0) setVisited(index);
    update({ step: one.step, rank: one.rank, node: one.address });
  };
  /** Places of the selected suspect and of the next one in this direction; -1: none is selected, there is none. */
  const placesOf = (calls: readonly Suspect[], delta: 1 | -1) => {
    const isVisited = (one: Suspect) => isShown(one) && originOf(one, calls, origins) === originIndex;
    const visitedAt = calls.findIndex(isVisited);
    const at = visitedAt >= 0 ? visitedAt : calls.findIndex(isShown);
    // From any other call on from the origin that the banner shows.
    const start = calls.findIndex((one) => originOf(one, calls, origins) === originIndex);
    const place = at >= 0 ? at : start;
    const next = place < 0 && delta < 0 ? calls.length - 1 : (place + delta + calls.length) % calls.length;
    return { at, next: calls.length === 0 || (calls.length === 1 && at === 0) ? -1 : next };
  };
  const nextSuspect = () => {
    const calls = callsOf(suspects);
    const { at, next } = placesOf(calls, 1);
    return at < 0 ? null : (calls[next] ?? null);
  };
  const moveSuspect = async (delta: 1 | -1) => {
    if (!unit) return; // not loaded yet
    const calls = callsOf(await client.fetchQuery(suspectsOptions(id, unit)));
    const { next } = placesOf(calls, delta);
    const one = calls[next];
    if (!one) return say(t("suspects.noOther"));
    showSuspect(one);
    const errors = { in: formatError(one.in_error, one.in_score), out: formatError(one.out_error, one.out_score) };
    say(t("suspects.at", { at: next + 1, of: calls.length, kind: t(`suspects.kinds.${one.kind}`), ...errors }));
  };
  // The banner is high, and as high as what it says: it is drawn behind the frame of the key.
  const shownIndex = useDeferredValue(originIndex);
  // The same for every selection, so that a key draws nothing anew that only leads somewhere.
  const latest = useRef({ moveOrigin, moveSuspect, moveToFirstOrigin, nextSuspect, showSuspect });
  latest.current = { moveOrigin, moveSuspect, moveToFirstOrigin, nextSuspect, showSuspect };
  const walk = useMemo(
    (): OriginWalk => ({
      originIndex: shownIndex,
      moveOrigin: (delta) => latest.current.moveOrigin(delta),
      moveSuspect: (delta) => latest.current.moveSuspect(delta),
      moveToFirstOrigin: () => latest.current.moveToFirstOrigin(),
      nextSuspect: () => latest.current.nextSuspect(),
      showSuspect: (one) => latest.current.showSuspect(one),
    }),
    [shownIndex],
  );
  const repeats = useCallback(
    (name: string) => unit !== null && origins.some((one) => one.node === name && recurs(one, unit)),
    [origins, unit],
  );
  const shown = useMemo(() => ({ suspects, pointed, point }), [suspects, pointed]);
  return (
    <OriginContext value={walk}>
      <SuspectContext value={shown}>
        <RepeatsContext value={repeats}>{children}</RepeatsContext>
      </SuspectContext>
    </OriginContext>
  );
}
