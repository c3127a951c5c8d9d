import { expect, test } from "vitest";
import { writeMultipart } from "../../../src/base/upload/multipart";

test("a browser's own reader finds every part with its name and bytes", async () => {
  const parts = ["run/a b.pt", "run/张量 #1?%.pt", "empty"].map((name, at) => ({
    name,
    sum: `0000000${at}`,
    bytes: Uint8Array.from({ length: at === 2 ? 0 : 300 }, (_, index) => (index * 7 + at) & 255),
  }));
  const { type, body } = writeMultipart(parts, "edge");
  const form = await new Response(body, { headers: { "Content-Type": type } }).formData();
  expect([...form.keys()]).toEqual(parts.flatMap(() => ["crc32", "files"]));
  expect(form.getAll("crc32")).toEqual(parts.map(({ sum }) => sum));
  for (const [index, file] of (form.getAll("files") as File[]).entries()) {
    expect(file.name).toBe(parts[index]?.name);
    expect(new Uint8Array(await file.arrayBuffer())).toEqual(parts[index]?.bytes);
  }
});

test("quotes and backslashes are escaped, line ends cannot make a header", () => {
  const { body } = writeMultipart([{ name: 'a"b\\c\r\nX: y', sum: "0", bytes: new Uint8Array(0) }], "edge");
  expect(new TextDecoder().decode(body)).toContain('filename="a\\"b\\\\c%0D%0AX: y"\r\n');
});
