/** The two sides of a comparison, and a guess from the names of two dumps which is which. */

export const SIDES = ["target", "golden"] as const;
export type Side = (typeof SIDES)[number];

const GOLDEN = /golden|gold|ref(erence)?|baseline|base|gpu|cuda|cpu|good|right|correct|expect(ed)?|before|old/gi;
const TARGET = /target|npu|ascend|fault(y)?|bad|wrong|broken|suspect|actual|after|new/gi;

/** The sides of the two dumps; the second is the golden if the names give no hint. */
export function guessSides(first: string, second: string): [Side, Side] {
  return goldenScore(first) > goldenScore(second) ? ["golden", "target"] : ["target", "golden"];
}

/** Above zero: sounds like the correct run. */
function goldenScore(name: string): number {
  return (name.match(GOLDEN)?.length ?? 0) - (name.match(TARGET)?.length ?? 0);
}
