/** The terms of a search that the page handles itself: `rank:3` and `step:1` go there; the server handles the rest. */
const PLACE = /(^|\s)(rank|step)[:=](\d+)(?=\s|$)/gi;

export interface SplitSearch {
  query: string;
  rank: number | null;
  step: number | null;
}

export function splitSearch(search: string): SplitSearch {
  const placed: SplitSearch = { query: "", rank: null, step: null };
  placed.query = search
    .replace(PLACE, (_whole, before: string, key: string, number: string) => {
      placed[key.toLowerCase() as "rank" | "step"] = Number(number);
      return before;
    })
    .trim();
  return placed;
}

const MICRO = /(?:^|\s)micro:(\d+)(?=\s|$)/i;

/** The one micro-step that a search is limited to; null where it is not. */
export function microStep(query: string): string | null {
  return MICRO.exec(query)?.[1] ?? null;
}

/** The search limited to another micro-step, or to none. */
export function withMicroStep(query: string, micro: string | null): string {
  const rest = query.replace(MICRO, "").trim();
  return micro === null ? rest : `${rest} micro:${micro}`.trim();
}

/** What the help shows of the search language: an example and the text that explains it. */
export const SEARCH_HELP = [
  ["self_attn softmax", "words"],
  ["-dropout", "not"],
  ['"a b"', "quotes"],
  ["/softmax\\.(1|3)/", "pattern"],
  ["api:linear,conv*", "api"],
  ["class:origin verdict:no", "codes"],
  ["match:aligned left:fused", "match"],
  ["note:accepted -note:any", "note"],
  ["alone:fail -alone:none", "alone"],
  ["reads:Tensor.add.0.forward feeds:…", "along"],
  ["kind:module direction:backward", "kind"],
  ["err>1e-2 in<5%", "errors"],
  ["score>=1 order:10..200", "numbers"],
  ["module:layers.1.attn", "module"],
  ["line:models.py:14", "line"],
  ["dtype:bfloat16 shape:[2,3]", "tensor"],
  ["micro:0", "micro"],
  ["rank:3 step:1", "place"],
] as const;
