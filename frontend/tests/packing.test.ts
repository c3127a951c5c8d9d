import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { pack } from "../src/api/packing";
import type { PickedFile } from "../src/base/drop";

function picked(path: string, content: Uint8Array<ArrayBuffer>): PickedFile {
  return { path, file: new File([content], path) };
}

const MIB = 1 << 20;

function hex(content: Uint8Array): string {
  return crc32(content).toString(16).padStart(8, "0");
}

test("a piece names its checksum and carries just its bytes", async () => {
  const content = Uint8Array.from({ length: 3 * MIB }, (_, at) => (at * 31) & 255);
  const [from, to] = [7, 2 * MIB + 9];
  const packed = await pack({ kind: "piece", picked: picked("run/a b.pt", content), from, to });
  const query = new URLSearchParams(packed.query);
  expect(query.get("path")).toBe("run/a b.pt");
  expect(query.get("offset")).toBe("7");
  expect(packed.headers["X-CRC32"]).toBe(hex(content.subarray(from, to)));
  const sent = Buffer.from(await (packed.body as Blob).arrayBuffer());
  expect(sent.equals(content.subarray(from, to))).toBe(true);
});

test("in a batch a checksum stands before each file", async () => {
  const contents = [new Uint8Array([1, 2, 3]), new Uint8Array(0)];
  const files = contents.map((content, at) => picked(`run/${at}.pt`, content));
  const form = (await pack({ kind: "batch", files, bytes: 3 })).body as FormData;
  expect([...form.keys()]).toEqual(["crc32", "files", "crc32", "files"]);
  expect(form.getAll("crc32")).toEqual(contents.map(hex));
  expect(form.getAll("files").map((file) => (file as File).name)).toEqual(["run/0.pt", "run/1.pt"]);
});
