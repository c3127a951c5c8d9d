/** Result files. The page fetches them itself, so it can show progress and cancel; the server then stops its work. */
import { ApiError, apiUrl, toError, UNREACHABLE } from "../client";
import type { Unit } from "../records";
import { listParams, type NodeListQuery } from "./nodes";

export interface Received {
  /** Bytes that came. */
  sent: number;
  /** Of the whole file, null where the server writes it while it is sent. */
  size: number | null;
}

export interface Exported {
  name: string;
  content: Blob;
}

/** Bytes kept in the page's memory; more goes to a blob, which the browser may keep on disk. */
const KEPT = 16_000_000;

/** `onReceived` is called first when the file is written, or begins to be sent. Throws an ApiError, or AbortError once cancelled. */
export async function fetchExport(
  url: string,
  signal: AbortSignal,
  onReceived: (received: Received) => void,
): Promise<Exported> {
  const reply = await fetch(url, { signal, credentials: "same-origin" }).catch(unanswered);
  if (!reply.ok) throw toError(reply.status, await reply.text());
  const announced = reply.headers.has("Content-Encoding") ? null : reply.headers.get("Content-Length");
  const size = announced === null ? null : Number(announced);
  let whole = new Blob([]);
  let kept: Uint8Array<ArrayBuffer>[] = [];
  let waiting = 0;
  const reader = reply.body?.getReader();
  for (let sent = 0; ; ) {
    onReceived({ sent, size });
    const next = await reader?.read().catch(unanswered);
    if (!next || next.done) break;
    kept.push(next.value);
    sent += next.value.length;
    waiting += next.value.length;
    if (waiting > KEPT) {
      whole = new Blob([whole, ...kept]);
      kept = [];
      waiting = 0;
    }
  }
  const type = reply.headers.get("Content-Type") ?? "";
  return {
    name: fileName(reply.headers.get("Content-Disposition") ?? ""),
    content: new Blob([whole, ...kept], { type }),
  };
}

function fileName(disposition: string): string {
  const full = /filename\*=UTF-8''([^;]+)/.exec(disposition)?.[1];
  return full === undefined ? (/filename="([^"]+)"/.exec(disposition)?.[1] ?? "result") : decodeURIComponent(full);
}

function unanswered(problem: unknown): never {
  if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
  throw new ApiError(0, UNREACHABLE, "The server does not answer.", null);
}

/** The report is for people to read: it is made in the language given. */
export function exportUrl(id: string, format: string, language?: string): string {
  const url = apiUrl("comparisons", id, `export.${format}`);
  return format === "html" && language !== undefined && language !== "en" ? `${url}?lang=${language}` : url;
}

/** A file of what the list shows; the JSON document then lists its item pairs too. */
export function exportListUrl(id: string, format: string, unit: Unit | null, list: NodeListQuery): string {
  const params = new URLSearchParams(format === "json" ? { pairs: "true" } : {});
  for (const [key, value] of Object.entries(listParams(unit, list))) {
    if (key !== "sort" && String(value) !== "") params.set(key, String(value));
  }
  return `${exportUrl(id, format)}?${params}`;
}
