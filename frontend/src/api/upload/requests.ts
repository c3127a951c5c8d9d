/**
 * The request of a parcel, with the checksums of its files; the server refuses a body that does not match, and it is sent again.
 * A broken proxy or plain HTTP may change a byte, which no reader of a dump would notice: it would be reported as a difference
 * between the runs. The check costs about a second per 512 MB. It runs on the page, as a worker made no upload faster.
 */
import i18next from "i18next";
import type { Parcel } from "../../base/upload/batches";
import { check } from "../../base/upload/checksums";
import { multipart } from "../../base/upload/multipart";
import type { PickedFile } from "../../base/upload/pickedFiles";

export interface Packed {
  method: "PUT" | "POST";
  query: string;
  headers: Record<string, string>;
  body: Blob;
}

/** Throws an error that names the file which was changed or moved since it was picked. */
export async function pack(parcel: Parcel): Promise<Packed> {
  if (parcel.kind === "batch") return together(parcel.files);
  const { picked, from, to } = parcel;
  const body = picked.file.slice(from, to);
  const { sums } = await check(body, [to - from]).catch(() => changed(picked));
  const query = new URLSearchParams({
    path: picked.path,
    size: String(picked.file.size),
    offset: String(from),
  });
  // From the file itself: what is handed back to the browser to send takes longer than its reading it again from memory, and a
  // buffer that is no blob a hundred times as long.
  const headers = { "Content-Type": "application/octet-stream", "X-CRC32": sums[0] ?? "" };
  return { method: "PUT", query: `?${query}`, headers, body };
}

/** Read as one, not file by file: a file of some bytes takes as long as one of some hundred thousand. */
async function together(files: readonly PickedFile[]): Promise<Packed> {
  const contents = files.map(({ file }) => file);
  const sizes = contents.map(({ size }) => size);
  const { bytes, sums } = await check(new Blob(contents), sizes).catch(() => nameChanged(files));
  let at = 0;
  const parts = files.map(({ path, file: { size } }, index) => {
    at += size;
    return { name: path, sum: sums[index] ?? "", bytes: new Uint8Array(bytes, at - size, size) };
  });
  const { type, body } = multipart(parts, `dumpscope${crypto.getRandomValues(new Uint32Array(8)).join("")}`);
  return { method: "POST", query: "", headers: { "Content-Type": type }, body: new Blob([body]) };
}

/** One of them cannot be read; which one is asked only then. */
async function nameChanged(files: readonly PickedFile[]): Promise<never> {
  for (const picked of files) await picked.file.arrayBuffer().catch(() => changed(picked));
  throw new Error(i18next.t("home.fileChanged", { path: files[0]?.path }));
}

function changed({ path }: PickedFile): never {
  throw new Error(i18next.t("home.fileChanged", { path }));
}
