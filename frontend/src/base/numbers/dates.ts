/** A moment on the wire (seconds since the epoch, or ISO text) in the reader's own time. */
export function formatMoment(moment: number | string | null | undefined, language: string): string {
  if (moment === null || moment === undefined || moment === "") return "";
  const date = typeof moment === "number" ? new Date(moment * 1000) : new Date(moment);
  if (Number.isNaN(date.getTime())) return String(moment);
  return date.toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
}

/** "0,2-4" -> [0,2,3,4]; empty means all; null where the text is not such a list. */
export function parseNumbers(text: string): number[] | null {
  const numbers = new Set<number>();
  for (const part of text.split(/[,\s]+/).filter(Boolean)) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!match) return null;
    const first = Number(match[1]);
    const last = Number(match[2] ?? match[1]);
    if (last < first || last - first > 10_000) return null;
    for (let number = first; number <= last; number += 1) numbers.add(number);
  }
  return [...numbers].sort((a, b) => a - b);
}
