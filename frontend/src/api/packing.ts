/** The request of a parcel: its files are read and their checksums taken, so that exactly what was checked is sent. */
import i18next from "i18next";
import { crc32 } from "../base/crc32";
import type { PickedFile } from "../base/drop";
import type { Parcel } from "../base/sending";

export interface Packed {
  method: "PUT" | "POST";
  query: string;
  headers: Record<string, string>;
  body: FormData | Blob;
}

/** Throws an error that names the file which was changed or moved since it was picked. */
export async function pack(parcel: Parcel): Promise<Packed> {
  if (parcel.kind === "batch") return { method: "POST", query: "", headers: {}, body: await form(parcel.files) };
  const { picked, from, to } = parcel;
  const body = await read(picked, from, to);
  // As a blob it is sent bit by bit; a buffer is handed over whole, and the page stands still meanwhile.
  const query = new URLSearchParams({
    path: picked.path,
    size: String(picked.file.size),
    offset: String(from),
  });
  const headers = { "Content-Type": "application/octet-stream", "X-CRC32": crc32(new Uint8Array(body)) };
  return { method: "PUT", query: `?${query}`, headers, body: new Blob([body]) };
}

async function form(files: readonly PickedFile[]): Promise<FormData> {
  const contents = await Promise.all(files.map((picked) => read(picked, 0, picked.file.size)));
  const filled = new FormData();
  for (const [index, content] of contents.entries()) {
    filled.append("crc32", crc32(new Uint8Array(content)));
    filled.append("files", new Blob([content]), files[index]?.path);
  }
  return filled;
}

async function read({ file, path }: PickedFile, from: number, to: number): Promise<ArrayBuffer> {
  try {
    return await file.slice(from, to).arrayBuffer();
  } catch {
    throw new Error(i18next.t("home.fileChanged", { path }));
  }
}
