/** Chooses labels for an axis that is too short for all of them. */

export interface Ticks {
  values: readonly number[];
  texts: readonly string[];
}

/** At most `most` of the ticks, evenly; the first and the last stay, as they may be 0 and infinity. */
export function thinTicks({ values, texts }: Ticks, most: number): Ticks {
  const last = values.length - 1;
  if (values.length <= Math.max(2, most)) return { values, texts };
  const stride = Math.ceil(last / (Math.max(2, most) - 1));
  const keep = values.flatMap((_, at) => (at === last || (at % stride === 0 && last - at >= stride) ? [at] : []));
  return { values: keep.map((at) => values[at] as number), texts: keep.map((at) => texts[at] ?? "") };
}
