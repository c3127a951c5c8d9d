/** Ways from the selected call to another one of the list. */

import { useQueryClient } from "@tanstack/react-query";
import { fetchNodes, nodeOptions } from "../../../api/comparison/nodes";
import type { NodeRow } from "../../../api/types";
import { type Address, type Filter, NO_FILTER } from "../../../base/address/address";
import { BAD_CLASSES, isBad } from "../../../base/comparison/verdicts";
import { IN_FILE } from "../../../base/inFile";
import { useTranslation } from "../../../texts/useTranslation";
import type { CallRows } from "../../../widgets/lists/useCallRows";
import { useSay } from "./notice";
import { useShownComparison } from "./result";
import { useSelection, useShownCalls } from "./SelectionProvider";

/** Rows read at once when the next bad call is not among the loaded ones. */
const BAD_ROWS = 50;

export interface CallWalk {
  /** Some rows down the list; negative: up. */
  move: (delta: number) => Promise<void>;
  moveToEdge: (edge: "first" | "last") => Promise<void>;
  moveToBad: (delta: 1 | -1) => Promise<void>;
}

export function useCallWalk(): CallWalk {
  const { t } = useTranslation();
  const say = useSay();
  const { id } = useShownComparison();
  const { address, unit, selected, select } = useSelection();
  const client = useQueryClient();
  const calls = useShownCalls();

  const moveTo = async (place: number) => {
    const within = Math.max(0, Math.min(place, calls.total - 1));
    const row = calls.rowAt(within) ?? (await calls.fetchAt(within));
    if (row) select(row.address, true);
  };
  /** From a row that the list does not show, on to the one at its place. */
  const move = (delta: number) => {
    const { selectedAt, goal } = calls;
    return moveTo(selectedAt >= 0 ? selectedAt + delta : goal.place + Math.min(delta, 0));
  };
  const moveToEdge = (edge: "first" | "last") => moveTo(edge === "first" ? 0 : calls.total - 1);

  const moveToBad = async (delta: 1 | -1) => {
    if (!unit) return;
    const next = findBad(calls, delta);
    if (next) return select(next.address, true);
    if (next === undefined && address.sort === "order" && selected !== null) {
      const order = (await client.ensureQueryData(nodeOptions(id, unit, selected)).catch(() => null))?.order;
      if (order === undefined) return say(t("list.noMore"));
      const { query, sort } = address;
      const filter = { ...address.filter, classes: badClasses(address.filter.classes) };
      const page = await fetchNodes(id, unit, { filter, query, sort }, selected, BAD_ROWS);
      const rows = page.items.filter((row) => (delta > 0 ? row.order > order : row.order < order));
      const found = delta > 0 ? rows[0] : rows.at(-1);
      if (found) return select(found.address, true);
    }
    say(t("list.noMore"));
  };
  return { move, moveToEdge, moveToBad };
}

/** Selects the call at a place in call order. */
export function useSelectByOrder(): (order: number) => Promise<void> {
  const { id } = useShownComparison();
  const { t } = useTranslation();
  const say = useSay();
  const { unit, select } = useSelection();
  return async (order) => {
    if (!unit) return;
    const filter: Filter = { ...NO_FILTER, range: [order, order] };
    const page = await fetchNodes(id, unit, { filter, query: "", sort: "order" }, null, 1);
    const row = page.items[0];
    if (row) select(row.address);
    else if (IN_FILE) say(t("file.callAbsent"));
  };
}

/** The next bad row; null where the list ends before one, undefined where it goes on with rows that are not loaded. */
function findBad(calls: CallRows, delta: 1 | -1): NodeRow | null | undefined {
  if (calls.selectedAt < 0) return undefined;
  for (let at = calls.selectedAt + delta; at >= 0 && at < calls.total; at += delta) {
    const row = calls.rowAt(at);
    if (row === undefined || isBad(row.cls)) return row;
  }
  return null;
}

/** The bad ones of the classes that the filter shows; all bad ones where it shows none of them. */
function badClasses(classes: Address["filter"]["classes"]): Address["filter"]["classes"] {
  const both = BAD_CLASSES.filter((cls) => classes.includes(cls));
  return both.length > 0 ? both : [...BAD_CLASSES];
}
