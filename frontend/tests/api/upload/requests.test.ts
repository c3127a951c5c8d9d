import { crc32 } from "node:zlib";
import { expect, test, vi } from "vitest";
import { ui as en } from "../../../../backend/dumpscope/texts/en.json";
import { packRequest } from "../../../src/api/upload/requests";
import type { PickedFile } from "../../../src/base/upload/pickedFiles";
import { addTexts } from "../../../src/texts/catalogues";

addTexts("en", { ui: en });

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
  const packed = await packRequest({ kind: "piece", picked: picked("run/a b.pt", content), from, to });
  const query = new URLSearchParams(packed.query);
  expect(query.get("path")).toBe("run/a b.pt");
  expect(query.get("offset")).toBe("7");
  expect(packed.headers["X-CRC32"]).toBe(hex(content.subarray(from, to)));
  const sent = Buffer.from(await packed.body.arrayBuffer());
  expect(sent.equals(content.subarray(from, to))).toBe(true);
});

test("in a batch a checksum stands before each file", async () => {
  const contents = [new Uint8Array([1, 2, 3]), new Uint8Array(0)];
  const files = contents.map((content, at) => picked(`run/${at}.pt`, content));
  const { headers, body } = await packRequest({ kind: "batch", files, bytes: 3 });
  const form = await new Response(body, { headers }).formData();
  expect([...form.keys()]).toEqual(["crc32", "files", "crc32", "files"]);
  expect(form.getAll("crc32")).toEqual(contents.map(hex));
  expect(form.getAll("files").map((file) => (file as File).name)).toEqual(["run/0.pt", "run/1.pt"]);
});

test("the file of a batch that cannot be read any more is named", async () => {
  const gone = picked("run/gone.pt", new Uint8Array([1]));
  gone.file.arrayBuffer = () => Promise.reject(new DOMException("changed", "NotReadableError"));
  const files = [picked("run/there.pt", new Uint8Array([2])), gone];
  const read = vi.spyOn(Blob.prototype, "arrayBuffer").mockRejectedValueOnce(new Error("one of them"));
  const sentence = en.home.fileChanged.replace("{path}", "run/gone.pt");
  await expect(packRequest({ kind: "batch", files, bytes: 2 })).rejects.toThrow(new Error(sentence));
  read.mockRestore();
});
