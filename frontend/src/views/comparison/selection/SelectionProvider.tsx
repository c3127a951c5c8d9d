/** What is selected on the screen. It is kept in the address; every panel reads it and every key and click changes it. */
import { createContext, type ReactNode, useCallback, useEffect, useMemo } from "react";
import { useNode } from "../../../api/comparison/nodes";
import type { Unit } from "../../../api/records";
import type { NodeDetail, Origin, Summary } from "../../../api/types";
import { type Address, NO_FILTER } from "../../../base/address/address";
import { findNearestUnit } from "../../../base/address/nearestUnit";
import { IN_FILE } from "../../../base/inFile";
import { type UpdateAddress, useAddress } from "../../../widgets/basic/navigation";
import { type CallRows, useCallRows } from "../../../widgets/lists/useCallRows";
import { useRequired } from "./required";
import { firstOpenOrigin, useResult, useShownComparison } from "./result";

export interface Selection {
  address: Address;
  update: UpdateAddress;
  /** Step and rank; null while they are not known. */
  unit: Unit | null;
  /** Address of the selected call. */
  selected: string | null;
  select: (name: string, replace?: boolean) => void;
  showOrigin: (origin: Origin) => void;
  clearFilter: () => void;
  /** The matching assistant is shown first, so the answer is not shown yet. */
  assistFirst: boolean;
}

/** Panels around the list have a later one of it: `Following`. */
export const SelectionContext = createContext<Selection | null>(null);
/** A context of its own: rows change with every scroll, and most panels do not show them. */
const CallRowsContext = createContext<CallRows | null>(null);

export function useSelection(): Selection {
  return useRequired(SelectionContext);
}

/** Rows of the call list as it is filtered and sorted. */
export function useShownCalls(): CallRows {
  return useRequired(CallRowsContext);
}

const NO_UNITS: Unit[] = [];

export function SelectionProvider({ children }: { children: ReactNode }) {
  const { id, options } = useShownComparison();
  const [address, updateAddress] = useAddress();
  const { summary, origins, notes, ready } = useResult();

  // Opens with the first origin that is not noted as accepted or known, else the first origin, else the first No, else the first
  // call of the first unit.
  const open = firstOpenOrigin(origins, notes);
  const start = origins[open] ?? summary?.first_no ?? null;
  const opened = findNearestUnit(
    (ready && summary?.units) || NO_UNITS,
    address.step ?? start?.step ?? null,
    address.rank ?? start?.rank ?? null,
  );
  const { step, rank } = opened ?? { step: null, rank: null };
  const unit = useMemo(() => (step !== null && rank !== null ? { step, rank } : null), [step, rank]);
  const known = address.node ?? (unit ? (findStart(origins.slice(open), summary, unit) ?? null) : null);

  const list = useMemo(
    () => ({ filter: address.filter, query: address.query, sort: address.sort }),
    [address.filter, address.query, address.sort],
  );
  const calls = useCallRows(id, unit, list, known);
  const selected = known ?? calls.rowAt(0)?.address ?? null;
  const { lead } = calls;
  /** Who goes to a call sees its row, also where the call is selected already and its row was scrolled away. */
  const update = useCallback<UpdateAddress>(
    (change, replace) => {
      updateAddress(change, replace);
      if (change.node !== undefined) lead();
    },
    [updateAddress, lead],
  );

  const apart = summary?.most_unmatched === true;
  const renames = (options.rename ?? []) as string[];
  const offer = !IN_FILE && renames.length === 0 && address.node === null && apart;
  const assistFirst = offer || (!IN_FILE && address.dialog === "assist" && apart);
  // The address is complete from the start, so that it can be copied before the first click.
  useEffect(() => {
    if (!unit || !selected) return;
    if (address.node === null || address.step !== unit.step || address.rank !== unit.rank) {
      const dialog = address.dialog ?? (offer ? "assist" : null);
      update({ step: unit.step, rank: unit.rank, node: selected, dialog }, true);
    }
  }, [unit, selected, address.node, address.step, address.rank, address.dialog, offer, update]);

  const select = useCallback((name: string, replace = false) => update({ node: name }, replace), [update]);
  const showOrigin = useCallback(
    (origin: Origin) => update({ step: origin.step, rank: origin.rank, node: origin.node }),
    [update],
  );
  const clearFilter = useCallback(() => update({ filter: NO_FILTER, query: "" }), [update]);
  const selection = useMemo(
    () => ({ address, update, unit, selected, select, showOrigin, clearFilter, assistFirst }),
    [address, update, unit, selected, select, showOrigin, clearFilter, assistFirst],
  );
  return (
    <SelectionContext value={selection}>
      <CallRowsContext value={calls}>{children}</CallRowsContext>
    </SelectionContext>
  );
}

/** The selected call in full, once it is loaded. */
export function useSelectedCall(): { node: NodeDetail | undefined; nodeProblem: Error | null } {
  const { id } = useShownComparison();
  const { unit, selected } = useSelection();
  const { data, error, isPlaceholderData } = useNode(id, unit, selected);
  return { node: isPlaceholderData ? undefined : data, nodeProblem: error };
}

/** The call of a step and rank to begin with. */
function findStart(origins: readonly Origin[], summary: Summary | undefined, unit: Unit): string | undefined {
  const here = (place: { step: number; rank: number }) => place.step === unit.step && place.rank === unit.rank;
  const origin = origins.find(here);
  if (origin) return origin.node;
  return summary?.first_no && here(summary.first_no) ? summary.first_no.node : undefined;
}
