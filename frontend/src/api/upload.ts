/** Uploads report progress, which fetch cannot, so they use XMLHttpRequest. */
import type { PickedFile } from "../base/drop";
import { ApiError, apiUrl, toError } from "./client";
import type { Accepted } from "./types";

export interface Upload {
  done: Promise<Accepted>;
  abort: () => void;
}

/** Sends files as one multipart request; each part's file name is its relative path. `onProgress` gets 0..1. */
export function upload(files: readonly PickedFile[], onProgress: (share: number) => void): Upload {
  const request = new XMLHttpRequest();
  const done = new Promise<Accepted>((resolve, reject: (problem: ApiError) => void) => {
    const form = new FormData();
    for (const { file, path } of files) form.append("files", file, path);
    request.open("POST", apiUrl("uploads"));
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    };
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText) as Accepted);
      else reject(toError(request.status, request.responseText));
    };
    request.onerror = () => reject(toError(0, ""));
    request.onabort = () => reject(new ApiError(0, "cancelled", "", null));
    request.send(form);
  });
  return { done, abort: () => request.abort() };
}
