import { useSource } from "../../../api/comparison/nodes";
import type { NodeDetail } from "../../../api/types";
import { snippet } from "../../../base/comparison/sourceRows";
import { foldStack } from "../../../base/comparison/stackFrames";
import { type Ticket, writeTicket } from "../../../base/comparison/ticket";
import { onlySide } from "../../../base/comparison/unmatched";
import { type MarkWord, markWord, verdictLabel } from "../../../base/comparison/verdicts";
import { IN_FILE } from "../../../base/inFile";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { CopyButton } from "../../../widgets/basic/CopyButton";
import { useResult, useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";

/** The selected call in one paragraph. */
export function useParagraph(node: NodeDetail): string {
  const { t } = useTranslation();
  const { origins } = useResult();
  const { unit } = useSelection();
  const only = onlySide(node);
  const origin = origins.find((one) => one.node === node.name && one.step === unit?.step && one.rank === unit?.rank);
  const alone =
    only === null
      ? ""
      : origin
        ? say(origin.evidence, origin.evidence_said)
        : t(only === "golden" ? "evidence.onlyGolden" : "evidence.onlyTarget");
  const told = only === null || node.leftover !== null ? say(node.explanation.text, node.explanation.said) : "";
  return [alone, told].filter(Boolean).join(" ");
}

/** The class of a call, or that it is a fault of an earlier step again. */
export function wordOf(node: NodeDetail): MarkWord {
  return node.explanation.facts.repeats === null ? markWord(node.cls, node.verdict) : "repeats";
}

/** Lines of source above and below the call's own in a ticket. */
const SNIPPET = 2;

/** Copies a call as the text of a ticket. */
export function TicketButton({ node, paragraph }: { node: NodeDetail; paragraph: string }) {
  const { t } = useTranslation();
  const comparison = useShownComparison();
  const { address, unit } = useSelection();
  const { data: source, isPlaceholderData } = useSource(comparison.id, unit, node.address);
  const known = source !== undefined && !isPlaceholderData && source.rows.length > 0;
  const stack =
    node.target_stack.length > 0
      ? { texts: node.target_stack, frames: node.target_frames }
      : { texts: node.golden_stack, frames: node.golden_frames };
  const tab = address.tab ?? (comparison.mode === "tensor" && node.match !== "none" ? "hist" : "order");
  const picture = t(`evidence.plot.${tab}`);
  const rank = (verdict: string) => (verdict === "no" ? 0 : verdict === "warning" ? 1 : 2);
  const items = node.items
    .filter((pair) => (pair.target_leaf ?? pair.golden_leaf)?.shape != null)
    .sort((one, other) => rank(one.verdict) - rank(other.verdict))
    .map((pair) => ({
      name: (pair.target ?? pair.golden ?? "").slice(node.name.length + 1),
      target: pair.target_leaf,
      golden: pair.golden_leaf,
      score: pair.score,
    }));
  const ticket: Ticket = {
    title: `${node.name}: ${t(`classes.${wordOf(node)}`)}, ${verdictLabel(node.verdict)}`,
    paragraph,
    facts: [
      [t("comparison.target"), comparison.target_name],
      [t("comparison.golden"), comparison.golden_name],
      [t("unit.step"), String(unit?.step ?? "")],
      [t("unit.rank"), String(unit?.rank ?? "")],
      [t("comparison.policy"), comparison.policy.split("\n")[0] ?? ""],
    ],
    frames: foldStack(stack).all,
    source: known ? snippet(source.rows, SNIPPET) : null,
    items,
    link: IN_FILE ? null : window.location.href,
    picture: tab === "values" ? null : { name: picture, file: `${node.name} ${picture}.png` },
  };
  const text = writeTicket(ticket, {
    stack: t("evidence.stack"),
    source: t("evidence.ticketSource"),
    framework: (count) => t("evidence.ticketFrames", { count }),
    numbers: t("evidence.io"),
    item: t("evidence.item"),
    side: t("evidence.ticketSide"),
    floors: t("evidence.ticketFloors"),
    target: t("comparison.target"),
    golden: t("comparison.golden"),
    open: t("evidence.ticketOpen"),
  });
  return (
    <span data-testid="copy-ticket">
      <CopyButton text={text} label={t("evidence.copyTicket")} />
    </span>
  );
}
