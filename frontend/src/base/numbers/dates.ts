/** A moment on the wire (seconds since the epoch, or ISO text) in the reader's own time. */
export function formatMoment(moment: number | string | null | undefined, language: string): string {
  if (moment === null || moment === undefined || moment === "") return "";
  const date = typeof moment === "number" ? new Date(moment * 1000) : new Date(moment);
  if (Number.isNaN(date.getTime())) return String(moment);
  return date.toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
}

/** A moment on the wire in few letters: the time alone if it was today. */
export function formatSince(moment: string, language: string, now = new Date()): string {
  const date = new Date(moment);
  if (date.toDateString() !== now.toDateString()) return formatMoment(moment, language);
  return date.toLocaleTimeString(language, { timeStyle: "short" });
}
