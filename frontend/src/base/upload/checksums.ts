/** Reads files and computes their checksums in one pass. */
import { crc32 } from "./crc32";

export interface CheckedFiles {
  /** The bytes of all files, one after the other. */
  bytes: ArrayBuffer;
  /** CRC-32 of each file. */
  sums: string[];
}

/** `content`: files one after the other; `sizes`: bytes of each. Throws if it cannot be read or is shorter than that. */
export async function readWithChecksums(content: Blob, sizes: readonly number[]): Promise<CheckedFiles> {
  const bytes = await content.arrayBuffer();
  let at = 0;
  const sums = sizes.map((size) => {
    at += size;
    return crc32(new Uint8Array(bytes, at - size, size));
  });
  return { bytes, sums };
}
