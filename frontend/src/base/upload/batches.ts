/** Splits an upload into requests: small files together, a large file in pieces, continuing after what the server has. */
import type { PickedFile } from "./pickedFiles";

/** Bytes of one request; the server takes twice as much. */
export const REQUEST_BYTES = 8_000_000;
export const REQUEST_FILES = 500;

/** Bytes that the server has of each path. */
export type ReceivedBytes = ReadonlyMap<string, number>;

export type Parcel =
  | { kind: "batch"; files: PickedFile[]; bytes: number }
  | { kind: "piece"; picked: PickedFile; from: number; to: number };

/** The requests that are still to send, in order. `refused`: paths that the server leaves out. */
export function planParcels(
  files: readonly PickedFile[],
  there: ReceivedBytes,
  refused: ReadonlySet<string>,
): Parcel[] {
  const found: Parcel[] = [];
  let batch: PickedFile[] = [];
  let bytes = 0;
  const flush = () => {
    if (batch.length > 0) found.push({ kind: "batch", files: batch, bytes });
    batch = [];
    bytes = 0;
  };
  for (const picked of files) {
    const { size } = picked.file;
    const have = there.get(picked.path);
    if (have === size || refused.has(picked.path)) continue;
    if (size > REQUEST_BYTES) {
      for (let from = have ?? 0; from < size; from += REQUEST_BYTES)
        found.push({ kind: "piece", picked, from, to: Math.min(size, from + REQUEST_BYTES) });
      continue;
    }
    if (bytes + size > REQUEST_BYTES || batch.length >= REQUEST_FILES) flush();
    batch.push(picked);
    bytes += size;
  }
  flush();
  return found;
}

/** Identifies these files without reading them: if picked again, their upload continues. */
export function fingerprint(files: readonly PickedFile[]): string {
  let low = 0x811c9dc5;
  let high = 0x01000193;
  for (const { file, path } of files)
    for (const letter of `${path}\n${file.size}\n${file.lastModified}\n`) {
      const code = letter.codePointAt(0) ?? 0;
      low = Math.imul(low ^ code, 0x01000193) >>> 0;
      high = Math.imul(high ^ (code + (low >>> 7)), 0x85ebca6b) >>> 0;
    }
  return `${files.length}-${high.toString(16)}${low.toString(16)}`;
}

/** Milliseconds before the next try after so many that failed: half a second, doubled up to a quarter of a minute. */
export function retryDelay(failures: number): number {
  return Math.min(15_000, 500 * 2 ** Math.max(0, failures - 1));
}

const WINDOW = 5_000;

/** Bytes per second over the last five seconds; null before enough was measured. */
export class Pace {
  private marks: [time: number, bytes: number][] = [];

  add(time: number, bytes: number): void {
    this.marks.push([time, bytes]);
    while (this.marks.length > 2 && (this.marks[1]?.[0] ?? 0) <= time - WINDOW) this.marks.shift();
  }

  /** Forgets what was measured before an interruption. */
  reset(): void {
    this.marks = [];
  }

  get speed(): number | null {
    const first = this.marks[0];
    const last = this.marks[this.marks.length - 1];
    if (!first || !last || last[0] - first[0] < 200 || last[1] <= first[1]) return null;
    return ((last[1] - first[1]) / (last[0] - first[0])) * 1000;
  }
}
