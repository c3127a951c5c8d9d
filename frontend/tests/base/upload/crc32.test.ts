import { crc32 as zlib } from "node:zlib";
import { expect, test } from "vitest";
import { crc32 } from "../../../src/base/upload/crc32";

test("it is the CRC-32 of zip and gzip, for every length and place", () => {
  expect(crc32(new TextEncoder().encode("123456789"))).toBe("cbf43926");
  expect(crc32(new Uint8Array(0))).toBe("00000000");
  const bytes = Uint8Array.from({ length: 300 }, (_, at) => (at * 73 + (at >> 3)) & 255);
  for (let start = 0; start < 9; start += 1)
    for (let end = start; end < bytes.length; end += 7)
      expect(crc32(bytes.subarray(start, end))).toBe(zlib(bytes.subarray(start, end)).toString(16).padStart(8, "0"));
});
