/**
 * The request of a parcel, with the checksums of its files; the server refuses a body that does not match, and it is sent again.
 * A broken proxy or plain HTTP may change a byte, which no reader of a dump would notice: it would be reported as a difference
 * between the runs. The check costs about a second per 512 MB. It runs on the page, as a worker made no upload faster.
 */

import type { Parcel } from "../../base/upload/batches";
import { readWithChecksums } from "../../base/upload/checksums";
import { writeMultipart } from "../../base/upload/multipart";
import type { PickedFile } from "../../base/upload/pickedFiles";
import { translate } from "../../texts/translation";

export interface UploadRequest {
  method: "PUT" | "POST";
  query: string;
  headers: Record<string, string>;
  body: Blob;
}

/** Throws an error that names the file which was changed or moved since it was picked. */
export async function packRequest(parcel: Parcel): Promise<UploadRequest> {
  if (parcel.kind === "batch") return packBatch(parcel.files);
  const { picked, from, to } = parcel;
  const body = picked.file.slice(from, to);
  const { sums } = await readWithChecksums(body, [to - from]).catch(() => throwChanged(picked));
  const query = new URLSearchParams({
    path: picked.path,
    size: String(picked.file.size),
    offset: String(from),
  });
  // The body is the file itself: handing the bytes back to the browser is slower than letting it read them again from memory, and a
  // plain buffer is a hundred times slower.
  const headers = { "Content-Type": "application/octet-stream", "X-CRC32": sums[0] ?? "" };
  return { method: "PUT", query: `?${query}`, headers, body };
}

/** Read as one blob: reading a file of a few bytes takes as long as one of a hundred thousand. */
async function packBatch(files: readonly PickedFile[]): Promise<UploadRequest> {
  const contents = files.map(({ file }) => file);
  const sizes = contents.map(({ size }) => size);
  const { bytes, sums } = await readWithChecksums(new Blob(contents), sizes).catch(() => throwNamed(files));
  let at = 0;
  const parts = files.map(({ path, file: { size } }, index) => {
    at += size;
    return { name: path, sum: sums[index] ?? "", bytes: new Uint8Array(bytes, at - size, size) };
  });
  const { type, body } = writeMultipart(parts, `dumpscope${crypto.getRandomValues(new Uint32Array(8)).join("")}`);
  return { method: "POST", query: "", headers: { "Content-Type": type }, body: new Blob([body]) };
}

/** Finds the file that cannot be read and throws an error that names it. */
async function throwNamed(files: readonly PickedFile[]): Promise<never> {
  for (const picked of files) await picked.file.arrayBuffer().catch(() => throwChanged(picked));
  throw new Error(translate("home.fileChanged", { path: files[0]?.path }));
}

function throwChanged({ path }: PickedFile): never {
  throw new Error(translate("home.fileChanged", { path }));
}
