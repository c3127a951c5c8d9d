/** How the end of a comparison is told in few letters: in the title of the page, and in a notification. */
import { callLabel } from "../text/callNames";

/** What a comparison must tell; its wire form does. */
interface Ended {
  status: string;
  origin: { node: string } | null;
}

/** Words for an end without an origin. */
export type EndWord = "none" | "failed" | "cancelled";

/** `✖ softmax.1`, or a sign and the word for what became of it. */
export function endNews({ status, origin }: Ended, word: (end: EndWord) => string): string {
  if (status === "failed") return `⚠ ${word("failed")}`;
  if (status === "cancelled") return word("cancelled");
  return origin ? `✖ ${shortCall(origin.node)}` : `✓ ${word("none")}`;
}

/** `Functional.softmax.1.forward` -> `softmax.1`: what fits into the title of a tab. */
export function shortCall(name: string): string {
  return callLabel(name).replace(/^[A-Z][A-Za-z]*[._](?=.*\d)/, "");
}

/** The title of a tab. */
export function pageTitle(words: string | null): string {
  return words === null ? "dumpscope" : `${words} - dumpscope`;
}
