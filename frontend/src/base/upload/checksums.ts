/** What is sent and its checksums, from one reading of the files. */
import { crc32 } from "./crc32";

export interface Checked {
  /** The bytes of all files, one after the other. */
  bytes: ArrayBuffer;
  /** CRC-32 of each file. */
  sums: string[];
}

/** `content`: files one after the other; `sizes`: bytes of each. Throws where it cannot be read, or is not as long as they say. */
export async function check(content: Blob, sizes: readonly number[]): Promise<Checked> {
  const bytes = await content.arrayBuffer();
  let at = 0;
  const sums = sizes.map((size) => {
    at += size;
    return crc32(new Uint8Array(bytes, at - size, size));
  });
  return { bytes, sums };
}
