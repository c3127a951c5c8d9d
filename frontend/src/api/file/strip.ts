/** The strip of a file has the most buckets that a server makes; a narrower screen shows fewer. */
import { CLASSES, type ClassWord } from "../../base/comparison/verdicts";
import type { Reach, Strip, StripBucket } from "../types";

/** Neighbours become one bucket, which is of the worst class among them. */
export function narrowStrip(strip: Strip, most: number): Strip {
  const count = strip.buckets.length;
  if (count <= most) return strip;
  const buckets: StripBucket[] = [];
  for (const [place, bucket] of strip.buckets.entries()) {
    const at = bucketOf(place, count, most);
    const before = buckets[at];
    const worst = before && rank(before.cls) <= rank(bucket.cls) ? before : bucket;
    buckets[at] = { ...worst, first: before?.first ?? bucket.first, last: bucket.last };
  }
  return { ...strip, buckets };
}

/** Runs of buckets, of the narrower strip; those that touch become one. */
export function narrowRuns({ runs, ...reach }: Reach, count: number, most: number): Reach {
  const narrow: [number, number][] = [];
  for (const [first, last] of runs) {
    const [from, to] = [bucketOf(first, count, Math.min(most, count)), bucketOf(last, count, Math.min(most, count))];
    const before = narrow.at(-1);
    if (before && from <= before[1] + 1) before[1] = Math.max(before[1], to);
    else narrow.push([from, to]);
  }
  return { ...reach, runs: narrow };
}

function bucketOf(place: number, count: number, most: number): number {
  return Math.floor((place * most) / count);
}

function rank(cls: string): number {
  return CLASSES.indexOf(cls as ClassWord);
}
