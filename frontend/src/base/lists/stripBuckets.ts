/** Geometry of the call-order strip: buckets side by side, whole pixels where there are more buckets than pixels. */

export interface Bucket {
  first: number;
  last: number;
  cls: string;
}

export function bucketLeft(index: number, count: number, width: number): number {
  return Math.round((index * width) / count);
}

/** Bucket at x, clamped to the strip; -1 if there is none. */
export function bucketAt(x: number, count: number, width: number): number {
  if (count === 0 || width <= 0) return -1;
  const guess = Math.min(count - 1, Math.max(0, Math.floor((x * count) / width)));
  if (guess + 1 < count && x >= bucketLeft(guess + 1, count, width)) return guess + 1;
  if (guess > 0 && x < bucketLeft(guess, count, width)) return guess - 1;
  return guess;
}

/** Index of the bucket that holds a place in call order, -1 where none does. */
export function findBucket(order: number, buckets: readonly Bucket[]): number {
  let low = 0;
  let high = buckets.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const bucket = buckets[middle] as Bucket;
    if (order < bucket.first) high = middle - 1;
    else if (order > bucket.last) low = middle + 1;
    else return middle;
  }
  return -1;
}

/** Height of a bucket, 0..1: higher for classes that matter more. */
export function bucketHeight(cls: string): number {
  switch (cls) {
    case "origin":
    case "nonfinite":
      return 1;
    case "amplifier":
      return 0.85;
    case "structural":
      return 0.7;
    case "propagated":
      return 0.6;
    case "contains":
      return 0.45;
    case "unknown":
      return 0.3;
    default:
      return 0.22;
  }
}

/** Left edges of marks `wide` pixels wide that stand centred at these places, moved so that none covers another, in the order given. */
export function spreadMarks(places: readonly number[], wide: number, width: number): number[] {
  const order = [...places.keys()].sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0) || a - b);
  const found = new Array<number>(places.length).fill(0);
  let end = 0;
  for (const index of order) {
    const wanted = Math.max(0, (places[index] ?? 0) - Math.floor(wide / 2));
    found[index] = Math.max(wanted, end);
    end = (found[index] ?? 0) + wide;
  }
  // Pushed over the right edge: back, the last ones first.
  let limit = width;
  for (const index of order.reverse()) {
    found[index] = Math.max(0, Math.min(found[index] ?? 0, limit - wide));
    limit = found[index] ?? 0;
  }
  return found;
}
