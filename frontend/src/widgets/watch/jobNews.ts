/** The end of a comparison is told by the title of the page and, where the reader wants it, by a notification of the browser. */
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { isOver, useJob } from "../../api/jobs";
import { isBusy } from "../../api/records";
import type { Comparison } from "../../api/types";
import { navigate } from "../../base/address/location";
import { endNews, findEnds, type Known, pageTitle } from "../../base/comparison/endNews";
import type { Translate } from "../../texts/translation";
import { useTranslation } from "../../texts/useTranslation";

const WANTED = "dumpscope.notify";
const listeners = new Set<() => void>();

export type Permission = "off" | "on" | "blocked";

/** Whether the reader is told, and what a click on the button does. */
export function useNotifications(): [Permission, () => void] {
  const state = useSyncExternalStore((tell) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  }, readPermission);
  return [state, () => void change(state)];
}

function readPermission(): Permission {
  if (typeof Notification === "undefined" || Notification.permission === "denied") return "blocked";
  return Notification.permission === "granted" && localStorage.getItem(WANTED) === "1" ? "on" : "off";
}

/** The browser is asked only here, on a click. */
async function change(state: Permission): Promise<void> {
  if (state === "on") localStorage.removeItem(WANTED);
  else if (state === "off") {
    localStorage.setItem(WANTED, "1");
    await Notification.requestPermission();
  }
  for (const tell of listeners) tell();
}

/** The title while a comparison runs and after it, and a notification when it ends; null: no comparison yet. */
export function useComparisonNews(comparison: Comparison | undefined): void {
  const { t } = useTranslation();
  const busy = comparison !== undefined && isBusy(comparison);
  const share = useShare(busy ? comparison : null);
  useEnds(useMemo(() => comparison && [comparison], [comparison]));
  const words = !comparison ? null : busy ? progressWords(t, share) : endNews(comparison, (end) => t(`news.${end}`));
  useTitle(words);
}

/** The same for a list: the title tells of the first that runs, or of the last that ended, until the reader does something. */
export function useListNews(comparisons: readonly Comparison[] | undefined): void {
  const { t } = useTranslation();
  const running = comparisons?.find(({ status }) => status === "running") ?? null;
  const share = useShare(running);
  const [ended, setEnded] = useState<string | null>(null);
  useEnds(comparisons, setEnded);
  useEffect(() => {
    if (ended === null) return;
    const seen = () => setEnded(null);
    window.addEventListener("pointerdown", seen);
    window.addEventListener("keydown", seen);
    return () => {
      window.removeEventListener("pointerdown", seen);
      window.removeEventListener("keydown", seen);
    };
  }, [ended]);
  useTitle(running ? progressWords(t, share) : ended);
}

function useTitle(words: string | null): void {
  useEffect(() => {
    document.title = pageTitle(words);
    return () => {
      document.title = pageTitle(null);
    };
  }, [words]);
}

function useShare(comparison: Comparison | null): number | null {
  const job = useJob(comparison?.job ?? null, () => undefined);
  return job && !isOver(job) ? Math.round(job.progress * 100) : null;
}

function progressWords(t: Translate, share: number | null): string {
  return share === null || share === 0 ? t("news.waiting") : t("news.comparing", { share });
}

/** Tells of each comparison that ended while the page is open, also of one that came and ended between two looks. */
function useEnds(comparisons: readonly Comparison[] | undefined, onEnd?: (words: string) => void): void {
  const { t } = useTranslation();
  const known = useRef<Known | null>(null);
  useEffect(() => {
    if (comparisons === undefined) return;
    const [ended, next] = findEnds(known.current, comparisons);
    known.current = next;
    for (const one of ended) {
      const words = endNews(one, (end) => t(`news.${end}`));
      onEnd?.(words);
      notify(words, one);
    }
  }, [comparisons, onEnd, t]);
}

function notify(words: string, { id, target_name: target, golden_name: golden }: Comparison): void {
  if (!document.hidden || readPermission() !== "on") return;
  try {
    const shown = new Notification(words, { body: `${target} ⇄ ${golden}`, tag: `dumpscope-${id}` });
    shown.onclick = () => {
      window.focus();
      navigate(`comparisons/${encodeURIComponent(id)}`);
    };
  } catch {
    // Some browsers show notifications only for installed pages; the title tells the end.
  }
}
