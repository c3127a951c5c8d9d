/** Uploads in pieces, which go on by themselves after a lost connection, and after a reload once the files are picked again. */

import { fingerprint, Pace, type Parcel, planParcels, retryDelay } from "../../base/upload/batches";
import type { Bundle, PickedFile } from "../../base/upload/pickedFiles";
import { forgetUpload, recallUpload, rememberUpload } from "../../base/upload/unfinished";
import { ApiError, api, apiUrl, readReply, toError } from "../client";
import type { Accepted, Upload as Wire } from "../types";
import { packRequest, type UploadRequest } from "./requests";

export interface Progress {
  /** Bytes that the server has, with those on their way. */
  sent: number;
  /** Bytes per second, null while unknown. */
  speed: number | null;
  /** The connection is gone, and is tried again. */
  lost: boolean;
}

export interface Upload {
  done: Promise<Accepted>;
  abort: () => void;
}

/** Statuses of a proxy or of a starting server, worth another try; any other error is final. */
const PASSING = new Set([0, 408, 425, 429, 500, 502, 503, 504]);

/** Sends files as one dump; each keeps its relative path. */
export function startUpload(bundle: Bundle, onProgress: (progress: Progress) => void): Upload {
  const stop = new AbortController();
  const sending = new UploadSession(bundle, onProgress, stop.signal);
  return { done: sending.run(), abort: () => stop.abort() };
}

class UploadSession {
  private readonly files: readonly PickedFile[];
  private readonly print: string;
  private readonly pace = new Pace();
  private id: string;
  private there = 0;

  constructor(
    private readonly bundle: Bundle,
    private readonly onProgress: (progress: Progress) => void,
    private readonly stop: AbortSignal,
  ) {
    this.files = bundle.files;
    this.print = fingerprint(bundle.files);
    this.id = recallUpload(this.print) ?? fresh();
  }

  async run(): Promise<Accepted> {
    let failures = 0;
    for (;;) {
      const before = this.there;
      try {
        const accepted = await this.once();
        forgetUpload(this.print);
        return accepted;
      } catch (problem) {
        if (this.stop.aborted) return this.cancelled();
        const status = problem instanceof ApiError ? problem.status : -1;
        failures = this.there > before ? 1 : failures + 1;
        // Expired, damaged in transit, or out of step with this page: ask the server again what it has.
        const looksAgain = (status === 404 || status === 409) && failures <= 3;
        if (!looksAgain && !PASSING.has(status)) {
          forgetUpload(this.print);
          throw problem;
        }
        if (status === 404) this.id = fresh();
        this.pace.reset();
        this.onProgress({ sent: this.there, speed: null, lost: true });
        await this.wait(retryDelay(failures));
        if (this.stop.aborted) return this.cancelled();
      }
    }
  }

  /** From what the server has to the end. */
  private async once(): Promise<Accepted> {
    const params = { path: { upload_id: this.id } };
    const body = { files: this.files.length, bytes: this.bundle.bytes, name: "" };
    const state = await readReply(api().PUT("/api/uploads/{upload_id}", { params, body, signal: this.stop }));
    // Not before: an upload that the server does not know yet looks like one that it has deleted.
    rememberUpload({ print: this.print, id: this.id, name: this.bundle.name });
    if (state.dump === null) {
      this.tell(state);
      const there = state.there > 0 || state.whole > 0 ? await this.known() : new Map<string, number>();
      const refused = new Set(state.problems.map((problem) => problem.loc));
      await this.sendAll(planParcels(this.files, there, refused));
    }
    return readReply(api().POST("/api/uploads/{upload_id}/finish", { params, signal: this.stop }));
  }

  /** Bytes that the server has of each file. */
  private async known(): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    let cursor: string | null = null;
    do {
      const page: { items: { path: string; bytes: number }[]; next: string | null } = await readReply(
        api().GET("/api/uploads/{upload_id}/files", {
          params: { path: { upload_id: this.id }, query: { limit: 500, cursor } },
          signal: this.stop,
        }),
      );
      for (const { path, bytes } of page.items) found.set(path, bytes);
      cursor = page.next;
    } while (cursor !== null);
    return found;
  }

  /** One request after the other; the next one is read while one is on its way. */
  private async sendAll(waiting: readonly Parcel[]): Promise<void> {
    let next = waiting[0] && packRequest(waiting[0]);
    for (let index = 0; next; index += 1) {
      const packed: UploadRequest = await next;
      const following = waiting[index + 1];
      next = following && packRequest(following);
      next?.catch(() => {}); // reported when its turn comes
      this.tell(await this.send(packed));
    }
  }

  /** It reports progress, which fetch cannot, so it is an XMLHttpRequest. */
  private send({ method, query, headers, body }: UploadRequest): Promise<Wire> {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    const answered = new Promise<Wire>((resolve, reject: (problem: ApiError) => void) => {
      request.upload.onprogress = (event) => this.move(this.there + event.loaded);
      request.onload = () => {
        if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText) as Wire);
        else reject(toError(request.status, request.responseText));
      };
      request.onerror = () => reject(toError(0, ""));
      request.onabort = () => reject(new ApiError(0, "cancelled", "", null));
      request.open(method, `${apiUrl("uploads", this.id, "files")}${query}`);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.send(body);
      this.stop.addEventListener("abort", abort);
      if (this.stop.aborted) abort();
    });
    return answered.finally(() => this.stop.removeEventListener("abort", abort));
  }

  private tell(state: Wire): void {
    this.there = state.there;
    this.move(state.there);
  }

  private move(sent: number): void {
    const shown = Math.min(sent, this.bundle.bytes);
    this.pace.add(performance.now(), shown);
    this.onProgress({ sent: shown, speed: this.pace.speed, lost: false });
  }

  private wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const over = () => {
        clearTimeout(timer);
        window.removeEventListener("online", over);
        this.stop.removeEventListener("abort", over);
        resolve();
      };
      const timer = setTimeout(over, milliseconds);
      window.addEventListener("online", over);
      this.stop.addEventListener("abort", over);
    });
  }

  /** Deletes what the server has; a server that cannot be reached deletes it later by itself. */
  private cancelled(): never {
    forgetUpload(this.print);
    void readReply(api().DELETE("/api/uploads/{upload_id}", { params: { path: { upload_id: this.id } } })).catch(
      () => {},
    );
    throw new ApiError(0, "cancelled", "", null);
  }
}

function fresh(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
