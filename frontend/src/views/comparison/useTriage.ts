/** The one selection model of the triage screen: every panel reads it, every key and click goes through it. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { fetchFlow, fetchNodes, nodeOptions, useNode } from "../../api/comparison/nodes";
import { type NotesByNode, useNotes } from "../../api/comparison/notes";
import { type FailingCalls, useUnitPrecheck } from "../../api/comparison/prechecks";
import { useOrigins, useSummary } from "../../api/comparison/summary";
import type { Unit } from "../../api/records";
import type { Flow, NodeDetail, NodeNote, NodeRow, Origin, Summary, UnitPrecheck } from "../../api/types";
import { type Address, type Filter, isFiltered, NO_FILTER, PLOTS, toPlot } from "../../base/address/address";
import { nearestUnit } from "../../base/address/nearestUnit";
import { stepBack, stepOn } from "../../base/comparison/flowSteps";
import { mostApart } from "../../base/comparison/unmatched";
import { BAD_CLASSES, isBad } from "../../base/comparison/verdicts";
import { copyText } from "../../base/text/clipboard";
import { currentAddress, type UpdateAddress, useAddress } from "../../widgets/basic/navigation";
import { describeProblem } from "../../widgets/basic/States";
import { useKeys } from "../../widgets/basic/useKeys";
import { type CallRows, useCallRows } from "../../widgets/lists/useCallRows";

export interface Triage {
  address: Address;
  update: UpdateAddress;
  /** The verdict waits for what the matching assistant proposes. */
  unread: boolean;
  summary: Summary | undefined;
  summaryProblem: Error | null;
  origins: Origin[];
  originIndex: number;
  unit: Unit | null;
  steps: number[];
  ranks: number[];
  selected: string | null;
  node: NodeDetail | undefined;
  nodeProblem: Error | null;
  calls: CallRows;
  /** What people say of calls, by name. */
  notes: NotesByNode;
  /** What pre-checks say of this step and rank, and whose calls fail alone. */
  checked: UnitPrecheck | undefined;
  failing: FailingCalls;
  notice: string;
  /** Shows a few words for a moment. */
  say: (words: string) => void;
  select: (name: string, replace?: boolean) => void;
  showOrigin: (origin: Origin) => void;
  moveOrigin: (delta: 1 | -1) => void;
  move: (delta: number) => Promise<void>;
  moveEdge: (edge: "first" | "last") => Promise<void>;
  moveBad: (delta: 1 | -1) => Promise<void>;
  pickOrder: (order: number) => Promise<void>;
  setStep: (step: number) => void;
  setRank: (rank: number) => void;
  copyLink: () => void;
  clearFilter: () => void;
}

/** assist: offer to match more calls first, where most have no partner. */
export function useTriage(id: string, assist: boolean): Triage {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [address, update] = useAddress();
  const { data: summary, error: summaryProblem } = useSummary(id, true);
  const { data: originReply } = useOrigins(id, true);
  const { notes, settled } = useNotes(id);
  const origins = originReply?.items ?? summary?.origins ?? NONE;
  const [notice, setNotice] = useState("");

  const units = summary?.units;
  const steps = useMemo(() => distinct(units?.map((one) => one.step)), [units]);
  const ranks = useMemo(() => distinct(units?.map((one) => one.rank)), [units]);

  // What to open with: the first origin that nobody accepted or knows, else the first origin, else the first No, else the first call of the first unit.
  const unsettled = Math.max(
    0,
    origins.findIndex((origin) => !isSettled(notes.get(origin.node))),
  );
  const start = origins[unsettled] ?? summary?.first_no ?? null;
  const ready = summary !== undefined && originReply !== undefined && settled;
  const opened = nearestUnit(
    (ready && units) || NO_UNITS,
    address.step ?? start?.step ?? null,
    address.rank ?? start?.rank ?? null,
  );
  const { step, rank } = opened ?? { step: null, rank: null };
  const unit = useMemo(() => (step !== null && rank !== null ? { step, rank } : null), [step, rank]);
  const { checked, failing } = useUnitPrecheck(id, unit);
  const known = address.node ?? (unit ? (startIn(origins.slice(unsettled), summary, unit) ?? null) : null);

  const list = useMemo(
    () => ({ filter: address.filter, query: address.query, sort: address.sort }),
    [address.filter, address.query, address.sort],
  );
  const calls = useCallRows(id, unit, list, known);
  const selected = known ?? calls.rowAt(0)?.address ?? null;
  const { data: node, error: nodeProblem, isPlaceholderData } = useNode(id, unit, selected);
  const fresh = node && !isPlaceholderData ? node : undefined;

  const offer = assist && address.node === null && summary !== undefined && mostApart(summary);
  // The address says all from the start, so that it can be pasted before the first click.
  useEffect(() => {
    if (!unit || !selected) return;
    if (address.node === null || address.step !== unit.step || address.rank !== unit.rank) {
      const dialog = address.dialog ?? (offer ? "assist" : null);
      update({ step: unit.step, rank: unit.rank, node: selected, dialog }, true);
    }
  }, [unit, selected, address.node, address.step, address.rank, address.dialog, offer, update]);

  useEffect(() => {
    if (!notice) return;
    const timer = setTimeout(() => setNotice(""), 2500);
    return () => clearTimeout(timer);
  }, [notice]);

  const select = useCallback((name: string, replace = false) => update({ node: name }, replace), [update]);
  const showOrigin = useCallback(
    (origin: Origin) => update({ step: origin.step, rank: origin.rank, node: origin.node }),
    [update],
  );
  // The origin last looked at stays in the banner while its neighbours are explored.
  const [visited, setVisited] = useState<number | null>(null);
  const isHere = (origin: Origin) =>
    origin.node === selected && origin.step === unit?.step && origin.rank === unit?.rank;
  // One call may have several causes: the one gone to last stays.
  const last = visited === null ? undefined : origins[visited];
  const here = last && isHere(last) ? (visited ?? -1) : origins.findIndex(isHere);
  useEffect(() => {
    if (here >= 0) setVisited(here);
  }, [here]);
  const originIndex = here >= 0 ? here : Math.min(visited ?? unsettled, Math.max(0, origins.length - 1));

  const moveOrigin = (delta: 1 | -1) => {
    if (origins.length === 0) return setNotice(t("list.noMore"));
    const index = (originIndex + delta + origins.length) % origins.length;
    const next = origins[index];
    if (!next) return;
    setVisited(index);
    showOrigin(next);
  };

  const moveTo = async (place: number) => {
    const row = await calls.fetchAt(Math.max(0, Math.min(place, calls.total - 1)));
    if (row) select(row.address, true);
  };
  /** From a row that the list does not show, on to the one at its place. */
  const move = (delta: number) => {
    const { selectedAt, goal } = calls;
    return moveTo(selectedAt >= 0 ? selectedAt + delta : goal.place + Math.min(delta, 0));
  };
  const moveEdge = (edge: "first" | "last") => moveTo(edge === "first" ? 0 : calls.total - 1);

  const moveBad = async (delta: 1 | -1) => {
    if (!unit) return;
    const next = scanBad(calls, delta);
    if (next) return select(next.address, true);
    const order = fresh?.order;
    if (next === undefined && order !== undefined && address.sort === "order") {
      const filter = { ...address.filter, classes: badWithin(address.filter.classes) };
      const page = await fetchNodes(id, unit, { ...list, filter }, selected, 50);
      const rows = page.items.filter((row) => (delta > 0 ? row.order > order : row.order < order));
      const found = delta > 0 ? rows[0] : rows.at(-1);
      if (found) return select(found.address, true);
    }
    setNotice(t("list.noMore"));
  };

  const pickOrder = async (order: number) => {
    if (!unit) return;
    const filter: Filter = { ...NO_FILTER, range: [order, order] };
    const page = await fetchNodes(id, unit, { filter, query: "", sort: "order" }, null, 1);
    const row = page.items[0];
    if (row) select(row.address);
  };

  const setStep = useCallback((next: number) => update({ step: next }), [update]);
  const setRank = useCallback((next: number) => update({ rank: next }), [update]);
  const cycle = (values: readonly number[], value: number | undefined, delta: 1 | -1, set: (next: number) => void) => {
    const next = values[values.indexOf(value ?? 0) + delta];
    if (next !== undefined) set(next);
  };

  const copyLink = async () => {
    const done = await copyText(window.location.href);
    setNotice(done ? t("app.copied") : t("app.copyFailed"));
  };

  const followFlow = async (step: typeof stepBack, nowhere: (flow: Flow) => string) => {
    if (!unit || !selected) return;
    try {
      const flow = await fetchFlow(client, id, unit, selected);
      const next = step(flow, isBad);
      const rank = step === stepBack ? flow.source?.rank : null;
      if (next && typeof rank === "number") update({ rank, node: next });
      else if (next) select(next);
      else setNotice(nowhere(flow));
    } catch (problem) {
      setNotice(describeProblem(problem).detail);
    }
  };
  const back = () =>
    followFlow(stepBack, ({ node }) => t(isBad(node.cls) ? "evidence.flow.begins" : "evidence.flow.notMade"));
  const on = () => followFlow(stepOn, () => t("evidence.flow.notPassed"));

  const clearFilter = useCallback(() => update({ filter: NO_FILTER, query: "" }), [update]);
  // A key may be pressed before the selected call is there: what it asks for is then awaited.
  const goUp = async () => {
    if (selected === null) return;
    const here = await client.ensureQueryData(nodeOptions(id, unit, selected)).catch(() => null);
    const parent = here?.path.at(-1);
    if (parent && (currentAddress().node ?? selected) === selected) select(parent);
  };

  const plot = (index: number) => () => {
    const tab = PLOTS[index];
    if (tab) update(toPlot(address, tab));
  };

  useKeys({
    nextNode: () => void move(1),
    previousNode: () => void move(-1),
    nextBad: () => void moveBad(1),
    previousBad: () => void moveBad(-1),
    nextOrigin: () => moveOrigin(1),
    previousOrigin: () => moveOrigin(-1),
    firstOrigin: () => {
      const first = origins[unsettled];
      if (first) {
        setVisited(unsettled);
        showOrigin(first);
      } else setNotice(t("list.noMore"));
    },
    search: () => document.querySelector<HTMLInputElement>("[data-search]")?.focus(),
    producer: () => void back(),
    consumer: () => void on(),
    parent: () => void goUp(),
    previousRank: () => cycle(ranks, unit?.rank, -1, setRank),
    nextRank: () => cycle(ranks, unit?.rank, 1, setRank),
    previousStep: () => cycle(steps, unit?.step, -1, setStep),
    nextStep: () => cycle(steps, unit?.step, 1, setStep),
    plot1: plot(0),
    plot2: plot(1),
    plot3: plot(2),
    plot4: plot(3),
    plot5: plot(4),
    plot6: plot(5),
    plot7: plot(6),
    plot8: plot(7),
    plot9: plot(8),
    inputs: () => showSection("section-io"),
    stack: () => showSection("section-stack"),
    source: () => selected !== null && update({ dialog: "source" }),
    flow: () => showSection("section-flow"),
    match: () => selected !== null && update({ dialog: "match" }),
    matches: () => update({ dialog: "matches" }),
    assist: () => update({ dialog: "assist" }),
    policy: () => update({ dialog: "policy" }),
    reproduce: () => selected !== null && update({ dialog: "reproduce" }),
    note: () => selected !== null && update({ dialog: "note" }),
    copyLink: () => void copyLink(),
    escape: () => {
      const now = currentAddress();
      if (now.dialog !== null) update({ dialog: null }, true);
      else if (isFiltered(now)) clearFilter();
    },
  });

  return {
    address,
    update,
    unread: offer || (address.dialog === "assist" && summary !== undefined && mostApart(summary)),
    summary,
    summaryProblem,
    origins,
    originIndex,
    unit,
    steps,
    ranks,
    selected,
    node: fresh,
    nodeProblem,
    calls,
    notes,
    checked,
    failing,
    notice,
    say: setNotice,
    select,
    showOrigin,
    moveOrigin,
    move,
    moveEdge,
    moveBad,
    pickOrder,
    setStep,
    setRank,
    copyLink: () => void copyLink(),
    clearFilter,
  };
}

const NONE: Origin[] = [];
const NO_UNITS: Unit[] = [];

/** Whether somebody said that nothing is to be done about a call's difference. */
function isSettled(note: NodeNote | undefined): boolean {
  return note?.standing === "accepted" || note?.standing === "known";
}

function distinct(numbers: readonly number[] | undefined): number[] {
  return [...new Set(numbers ?? [])].sort((a, b) => a - b);
}

function startIn(origins: readonly Origin[], summary: Summary | undefined, unit: Unit): string | undefined {
  const here = (place: { step: number; rank: number }) => place.step === unit.step && place.rank === unit.rank;
  const origin = origins.find(here);
  if (origin) return origin.node;
  return summary?.first_no && here(summary.first_no) ? summary.first_no.node : undefined;
}

/** The next bad row; null where the list ends before one, undefined where it goes on with rows that are not here. */
function scanBad(calls: CallRows, delta: 1 | -1): NodeRow | null | undefined {
  if (calls.selectedAt < 0) return undefined;
  for (let at = calls.selectedAt + delta; at >= 0 && at < calls.total; at += delta) {
    const row = calls.rowAt(at);
    if (row === undefined || isBad(row.cls)) return row;
  }
  return null;
}

function badWithin(classes: Address["filter"]["classes"]): Address["filter"]["classes"] {
  const both = BAD_CLASSES.filter((cls) => classes.includes(cls));
  return both.length > 0 ? both : [...BAD_CLASSES];
}

function showSection(id: string): void {
  const section = document.getElementById(id);
  section?.scrollIntoView({ block: "start" });
  section?.focus({ preventScroll: true });
}
