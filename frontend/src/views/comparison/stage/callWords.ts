/** Calls and what passed between them, in the few letters and the sentences of the path view. */
import type { Passage, PathEnd, PathItem, PathView } from "../../../api/types";
import { formatError } from "../../../base/numbers/format";
import { apiName, callLabel } from "../../../base/text/callNames";
import { isText, type Translate } from "../../../texts/translation";

/** `Functional.softmax.1.forward` -> `softmax.1`, `Module.layers.1.attn.Attn.forward.0` -> `attn.Attn`. */
export function shortCall(name: string): string {
  const label = callLabel(name);
  const module = name.startsWith("Module.");
  if (module) return label.split(".").slice(-2).join(".");
  const api = apiName(name);
  const lead = api.includes(".") ? api.slice(0, api.indexOf(".") + 1) : "";
  return label.startsWith(lead) ? label.slice(lead.length) : label;
}

/** `Module.layers.1.attn.Attn.forward.0` -> `layers.1.attn`. */
export function shortModule(name: string): string {
  const parts = name.split(".");
  return parts[0] === "Module" && parts.length > 4 ? parts.slice(1, -3).join(".") : name;
}

/** `input 0`, as the receiver names it. */
export function itemWords(item: PathItem | null, t: Translate): string {
  if (item === null) return "";
  const role = isText(`roles.${item.role}`) ? t(`roles.${item.role as "input"}`) : item.role;
  return item.path ? `${role} ${item.path}` : role;
}

export function differs(one: Pick<Passage | PathEnd, "item"> & { word: string }): boolean {
  if (one.word === "saved" || one.word === "before" || one.word === "sent") return true;
  return one.item?.verdict === "no" || one.item?.verdict === "warning";
}

/** Whether nothing at all differs in what was passed. */
export function isEqual(one: Pick<Passage | PathEnd, "item" | "error"> & { word: string }): boolean {
  return !differs(one) && (one.error === 0 || (one.error === null && one.item?.score === 0));
}

/** The error as the line shows it: `0.32%`, `=`, or why there is none. */
export function errorWords(one: Pick<Passage | PathEnd, "item" | "error"> & { word: string }, t: Translate): string {
  if (one.word === "saved") return t("path.saved");
  if (one.word === "before") return t("path.assumed");
  return isEqual(one) ? "=" : formatError(one.error, one.item?.score);
}

/** What a call received and passed on, a sentence each, the worst first as the server sends them. */
export function sentences(view: PathView, pair: number, t: Translate): string[] {
  const names = new Map(
    view.boxes.map(({ node }) => {
      const turn = node.direction === "backward" ? ` (${t("comparison.backward")})` : "";
      return [node.pair, `${shortCall(node.name)}${turn}`];
    }),
  );
  const said = (one: Passage | PathEnd) =>
    [isEqual(one) ? t("path.equal") : t("path.error", { error: errorWords(one, t) })]
      .concat(one.items > 1 ? t("path.further", { count: one.items - 1 }) : [])
      .join(", ");
  const found: string[] = [];
  for (const one of view.passages) {
    const [from, to] = [names.get(one.maker), names.get(one.reader)];
    const item = itemWords(one.item, t);
    if (one.reader === pair) {
      if (one.word === "received") found.push(t("path.received", { item: capital(item), from, error: said(one) }));
      else found.push(t(one.word === "saved" ? "path.savedHere" : "path.assumedHere", { from }));
    }
    if (one.maker === pair) {
      if (one.word === "received") found.push(t("path.passed", { item, to, error: said(one) }));
      else found.push(t(one.word === "saved" ? "path.savedThere" : "path.assumedThere", { to }));
    }
  }
  for (const end of view.ends) {
    if (end.reader !== pair) continue;
    if (end.word === "sent") found.push(`${endHelp(end, t)}.`);
    else
      found.push(t("path.unmade", { item: capital(itemWords(end.item, t)), word: endHelp(end, t), error: said(end) }));
  }
  return found;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Why no call is shown that made it. */
export function endHelp(end: PathEnd, t: Translate): string {
  if (end.word === "weight") return t("path.endHelp.weight");
  if (end.word === "sent") return t("path.endHelp.sent", { rank: end.rank, node: end.node });
  return t(`evidence.flow.untold.${end.word}`);
}
