/** CRC-32 as in zip and gzip. Own code, because browsers offer no digests on plain HTTP. */

const WIDTH = 8;

/** For each byte value with 0 to 7 bytes after it, so eight bytes are processed at once. */
const TABLES = tables();

/** Eight hexadecimal digits. */
export function crc32(bytes: Uint8Array): string {
  let crc = 0xffffffff;
  let at = 0;
  for (const whole = bytes.length - (bytes.length % WIDTH); at < whole; at += WIDTH) {
    const low =
      crc ^ (byte(bytes, at) | (byte(bytes, at + 1) << 8) | (byte(bytes, at + 2) << 16) | (byte(bytes, at + 3) << 24));
    crc =
      entry(7, low & 255) ^
      entry(6, (low >>> 8) & 255) ^
      entry(5, (low >>> 16) & 255) ^
      entry(4, low >>> 24) ^
      entry(3, byte(bytes, at + 4)) ^
      entry(2, byte(bytes, at + 5)) ^
      entry(1, byte(bytes, at + 6)) ^
      entry(0, byte(bytes, at + 7));
  }
  for (; at < bytes.length; at += 1) crc = entry(0, (crc ^ byte(bytes, at)) & 255) ^ (crc >>> 8);
  return ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}

function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}

function entry(table: number, value: number): number {
  return TABLES[table * 256 + value] as number;
}

function tables(): Int32Array {
  const found = new Int32Array(WIDTH * 256);
  for (let value = 0; value < 256; value += 1) {
    let crc = value;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    found[value] = crc;
  }
  for (let at = 256; at < found.length; at += 1) {
    const before = found[at - 256] as number;
    found[at] = (found[before & 255] as number) ^ (before >>> 8);
  }
  return found;
}
