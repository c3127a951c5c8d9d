import { expect, test } from "vitest";
import { fingerprint, Pace, planParcels, REQUEST_BYTES, retryDelay } from "../../../src/base/upload/batches";
import type { PickedFile } from "../../../src/base/upload/pickedFiles";

/** A file of a size, without its bytes. */
function file(path: string, size: number, lastModified = 1): PickedFile {
  return { path, file: { size, lastModified } as File };
}

const NONE = new Map<string, number>();

test("five thousand small files are ten requests", () => {
  const files = Array.from({ length: 5000 }, (_, number) => file(`run/${number}.pt`, 100));
  const sent = planParcels(files, NONE, new Set());
  expect(sent).toHaveLength(10);
  expect(sent.flatMap((one) => (one.kind === "batch" ? one.files : []))).toEqual(files);
});

test("a large file goes on in pieces from where it is, and no request carries more than its limit", () => {
  const large = file("run/a.pt", 3 * REQUEST_BYTES + 5);
  const sent = planParcels([large, file("run/b", 0), file("run/c", 7)], new Map([["run/a.pt", 11]]), new Set());
  const pieces = sent.flatMap((one) => (one.kind === "piece" ? [[one.from, one.to]] : []));
  expect(pieces[0]?.[0]).toBe(11);
  expect(pieces[pieces.length - 1]?.[1]).toBe(3 * REQUEST_BYTES + 5);
  for (const [index, [from, to]] of pieces.entries()) {
    expect((to ?? 0) - (from ?? 0)).toBeLessThanOrEqual(REQUEST_BYTES);
    if (index > 0) expect(from).toBe(pieces[index - 1]?.[1]);
  }
  expect(sent[sent.length - 1]).toMatchObject({ kind: "batch", bytes: 7 });
});

test("what is whole or refused is not sent again, an empty file that is missing is", () => {
  const files = [file("run/whole", 3), file("run/refused", 3), file("run/empty", 0), file("run/there", 0)];
  const sent = planParcels(
    files,
    new Map([
      ["run/whole", 3],
      ["run/there", 0],
    ]),
    new Set(["run/refused"]),
  );
  expect(sent).toEqual([{ kind: "batch", files: [files[2]], bytes: 0 }]);
});

test("the same files picked again are known, one that changed makes others of them", () => {
  const files = [file("run/a", 3), file("run/b", 4)];
  expect(fingerprint(files)).toBe(fingerprint([file("run/a", 3), file("run/b", 4)]));
  for (const other of [[file("run/a", 3), file("run/b", 5)], [file("run/a", 3, 2), file("run/b", 4)], files.slice(1)])
    expect(fingerprint(other)).not.toBe(fingerprint(files));
});

test("pauses grow and stay bearable", () => {
  expect([1, 2, 3, 9].map(retryDelay)).toEqual([500, 1000, 2000, 15_000]);
});

test("the pace is that of the last seconds", () => {
  const pace = new Pace();
  expect(pace.speed).toBeNull();
  for (const second of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) pace.add(second * 1000, second < 5 ? 0 : (second - 5) * 600);
  expect(pace.speed).toBeCloseTo(600);
  pace.reset();
  expect(pace.speed).toBeNull();
});
