/** One way to ask the server: paths, parameters and answers are checked against its OpenAPI document, and there is one error. */
import type { Client } from "openapi-fetch";
import { mountPrefix } from "../base/address/location";
import { IN_FILE } from "../base/inFile";
import { isPhrases, type Phrase } from "../base/text/phrases";
import { answerFromFile } from "./file/answer";
import type { paths } from "./schema";

/** Codes of errors that did not come from the server; screens translate them. */
export const UNREACHABLE = "unreachable";
export const NO_BODY = "no_body";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly hint: string | null,
    /** What kind of file it is, if it is not a dump. */
    readonly kind: string | null = null,
    /** The phrases behind detail and hint. */
    readonly said: Phrase[] | null = null,
    readonly hintSaid: Phrase[] | null = null,
  ) {
    super(detail);
    this.name = "ApiError";
  }
}

type Fields = Readonly<Record<string, unknown>>;

interface Asked {
  params?: { path?: Fields; query?: Fields };
  body?: unknown;
  signal?: AbortSignal;
  /** How an answer is read that is not JSON. */
  parseAs?: "blob";
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** openapi-fetch's types over the few lines of it that this page needs: paths with names in braces, lists, JSON, files. */
const client = Object.fromEntries(
  METHODS.map((method) => [method, (path: string, asked?: Asked) => send(method, path, asked ?? {})]),
) as unknown as Client<paths>;

export function api(): Client<paths> {
  return client;
}

async function send(
  method: string,
  path: string,
  { params = {}, body, signal, parseAs }: Asked,
): Promise<Reply<unknown>> {
  const fill = (write: (part: string) => string) =>
    path.replace(/\{(\w+)\}/g, (_whole, name: string) => write(String(params.path?.[name])));
  if (IN_FILE) {
    const { status, body: kept } = answerFromFile(method, path, fill(String), params.query ?? {});
    const response = new Response(null, { status });
    return response.ok ? { data: kept, response } : { error: kept, response };
  }
  const filled = fill(encodeURIComponent);
  const url = mountPrefix().replace(/\/$/, "") + filled + toQuery(params.query ?? {});
  const response = await fetch(url, {
    method,
    credentials: "same-origin",
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
    ...(signal ? { signal } : {}),
  });
  if (response.ok && parseAs === "blob") return { data: await response.blob(), response };
  const text = await response.text();
  const parsed = parse(text);
  return response.ok ? { data: text === "" ? undefined : parsed, response } : { error: parsed ?? text, response };
}

/** Lists as several values of one name; what is null or undefined is left out. */
function toQuery(fields: Fields): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null && one !== undefined) query.append(name, String(one));
  const text = query.toString();
  return text && `?${text}`;
}

interface Reply<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer's data, or an ApiError that says what went wrong. */
export async function readReply<T>(asked: Promise<Reply<T>>): Promise<T> {
  let reply: Reply<T>;
  try {
    reply = await asked;
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new ApiError(0, UNREACHABLE, "The server does not answer.", null);
  }
  if (!reply.response.ok) throw toError(reply.response.status, reply.error);
  return reply.data as T;
}

/** The one error body of docs/rest.md; anything else (a proxy's page) still gives a readable error. */
export function toError(status: number, body: unknown): ApiError {
  const parsed = typeof body === "string" ? parse(body) : body;
  if (typeof parsed === "object" && parsed !== null && "detail" in parsed) {
    const { error, detail, hint, kind, said, hint_said } = parsed as Record<string, unknown>;
    const text = typeof detail === "string" ? detail : JSON.stringify(detail);
    return new ApiError(
      status,
      String(error ?? "error"),
      text,
      textOf(hint),
      textOf(kind),
      isPhrases(said) ? said : null,
      isPhrases(hint_said) ? hint_said : null,
    );
  }
  return status === 0
    ? new ApiError(0, UNREACHABLE, "The server does not answer.", null)
    : new ApiError(status, NO_BODY, `The server answered with status ${status}.`, null);
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Address of something that is not fetched as JSON: a download, an event stream, a script. */
export function apiUrl(...parts: readonly string[]): string {
  return `${mountPrefix()}api/${parts.map(encodeURIComponent).join("/")}`;
}
