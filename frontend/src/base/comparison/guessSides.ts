/** Which of two dropped dumps is the one under suspicion, told from their names. */
import type { Side } from "./unmatched";

const GOLDEN = /golden|gold|ref(erence)?|baseline|base|gpu|cuda|cpu|good|right|correct|expect(ed)?|before|old/gi;
const TARGET = /target|npu|ascend|fault(y)?|bad|wrong|broken|suspect|actual|after|new/gi;

/** The sides of two dumps in the order of their names; the second is the golden where the names do not tell. */
export function sidesOf(first: string, second: string): [Side, Side] {
  return leaning(first) > leaning(second) ? ["golden", "target"] : ["target", "golden"];
}

/** Above zero: sounds like the run that is right. */
function leaning(name: string): number {
  return (name.match(GOLDEN)?.length ?? 0) - (name.match(TARGET)?.length ?? 0);
}

/** Whether text that was typed where a dump is picked is a path on the server. */
export function isPath(text: string): boolean {
  return /^(\/|~\/|[A-Za-z]:[\\/]|\\\\)/.test(text.trim());
}
