/** How the end of a comparison is told in few letters: in the title of the page, and in a notification. */
import { callLabel } from "../text/callNames";

/** What a comparison must tell; its wire form does. */
interface Ended {
  status: string;
  origin: { node: string } | null;
}

/** The same, of one in a list that is looked at now and then. */
interface Listed {
  id: string;
  job: string | null;
  status: string;
  created: string;
}

/** What the last look saw: the job of each comparison, null while it is at work; and when the newest was made. */
export interface Known {
  jobs: ReadonlyMap<string, string | null>;
  newest: string;
}

const AT_WORK: ReadonlySet<string> = new Set(["pending", "running"]);

/** Those that ended since the last look, and what to know at the next. A comparison that is made again has another job; one that is
 * listed for the first time counts if it was made since, not if the list only became longer. known: null at the first look */
export function findEnds<T extends Listed>(known: Known | null, listed: readonly T[]): [T[], Known] {
  const jobs = new Map(known?.jobs);
  let newest = known?.newest ?? "";
  const ended: T[] = [];
  for (const one of listed) {
    const atWork = AT_WORK.has(one.status);
    const before = jobs.get(one.id);
    const isNew = before === undefined ? known !== null && one.created > known.newest : before !== one.job;
    if (!atWork && isNew) ended.push(one);
    jobs.set(one.id, atWork ? null : one.job);
    if (one.created > newest) newest = one.created;
  }
  return [ended, { jobs, newest }];
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
