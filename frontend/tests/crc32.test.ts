import { describe, expect, it } from "vitest";
import { crc32 } from "../src/base/crc32";

describe("CRC-32", () => {
  it("is that of zlib", () => {
    const of = (text: string) => crc32(new TextEncoder().encode(text));
    expect(of("")).toBe("00000000");
    expect(of("123456789")).toBe("cbf43926");
    expect(of("a")).toBe("e8b7be43");
  });
});
