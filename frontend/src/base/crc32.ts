/** CRC-32 as zip and zlib have it: browsers offer no checksum on plain http, where `crypto.subtle` is missing. */

const TABLE = new Uint32Array(256).map((_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** Eight hexadecimal digits. */
export function crc32(bytes: Uint8Array): string {
  let value = 0xffffffff;
  for (let at = 0; at < bytes.length; at++)
    value = (value >>> 8) ^ (TABLE[(value ^ (bytes[at] as number)) & 0xff] as number);
  return ((value ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}
