/** One way to ask the server: typed answers, one error, every path part encoded. */
import { mountPrefix } from "../base/location";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly hint: string | null,
  ) {
    super(detail);
    this.name = "ApiError";
  }
}

export type QueryValue = string | number | boolean | null | undefined | readonly (string | number)[];

/** Address below `/api`; parts are encoded, empty query values left out. */
export function apiUrl(parts: readonly (string | number)[], query: Record<string, QueryValue> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) for (const one of value) params.append(key, String(one));
    else params.set(key, String(value));
  }
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  const text = params.toString();
  return `${mountPrefix()}api/${path}${text ? `?${text}` : ""}`;
}

interface Ask {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  body?: unknown;
  signal?: AbortSignal;
}

export async function ask<T>(url: string, { method = "GET", body, signal }: Ask = {}): Promise<T> {
  const init: RequestInit = { method, headers: { Accept: "application/json" }, credentials: "same-origin" };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...init.headers, "Content-Type": "application/json" };
  }
  let reply: Response;
  try {
    reply = await fetch(url, init);
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new ApiError(0, "unreachable", "The server does not answer.", "Check that dumpscope serve is still running.");
  }
  if (reply.status === 204) return undefined as T;
  const text = await reply.text();
  if (!reply.ok) throw toError(reply.status, text);
  return JSON.parse(text) as T;
}

/** The one error body of docs/rest.md; anything else (a proxy's page) still gives a readable error. */
export function toError(status: number, text: string): ApiError {
  try {
    const body = JSON.parse(text) as { error?: string; detail?: unknown; hint?: string | null };
    const detail = typeof body.detail === "string" ? body.detail : JSON.stringify(body.detail ?? body);
    return new ApiError(status, body.error ?? "error", detail, body.hint ?? null);
  } catch {
    return new ApiError(status, "error", `The server answered with status ${status}.`, null);
  }
}
