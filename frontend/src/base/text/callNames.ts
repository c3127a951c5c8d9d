/** A long name in two parts: the head may be cut, the tail (where names differ) always stays readable. */
export function splitName(name: string, tailLength = 20): [head: string, tail: string] {
  const points = Array.from(name);
  if (points.length <= tailLength) return ["", name];
  return [points.slice(0, -tailLength).join(""), points.slice(-tailLength).join("")];
}

/** For places without layout (canvas, titles): "Module.layers…forward.0". */
export function cutMiddle(name: string, length: number): string {
  const points = Array.from(name);
  if (points.length <= length) return name;
  const tail = Math.ceil((length - 1) * 0.6);
  return `${points.slice(0, length - 1 - tail).join("")}…${points.slice(-tail).join("")}`;
}

/** What ptdbg wrote before 6.0, `Functional_softmax_1_forward`: category, operation, number, direction. */
const UNDERSCORED = /^([A-Za-z]+)_(.+)_(\d+)_(forward|backward)((?:#\d+)?)$/;

/** `Functional.softmax.1.forward` -> `Functional.softmax`: the API a node calls, as filters name it. */
export function apiName(name: string): string {
  return name.replace(UNDERSCORED, "$1.$2").replace(/\.\d+\.(forward|backward)((?:#\d+)?)$/, "");
}

/** Short name for a call's other direction: `1.backward`, of a module `backward.0`. */
export function turnLabel(name: string): string {
  const parts = UNDERSCORED.exec(name);
  return parts ? `${parts[3]}.${parts[4]}${parts[5]}` : name.split(".").slice(-2).join(".");
}

/** A call in few letters, its direction left out: `Functional.dropout.1`, `layers.1.attn.Attn`, `layers.1.attn.Attn #2`. */
export function callLabel(name: string): string {
  const module = /^Module\.(.+)\.(?:forward|backward)\.(\d+)$/.exec(name);
  if (module) return module[2] === "0" ? (module[1] ?? name) : `${module[1]} #${module[2]}`;
  return name.replace(/[._](forward|backward)((?:#\d+)?)$/, "$2");
}

/** Names that have the text as whole parts come before others: `softmax.1` before `softmax.10`; equal ones keep their order. */
export function wholeFirst<T extends { name: string }>(found: readonly T[], text: string): T[] {
  const wanted = `.${text.toLowerCase()}.`;
  const isWhole = ({ name }: T) => `.${name.toLowerCase()}.`.includes(wanted);
  return [...found.filter(isWhole), ...found.filter((one) => !isWhole(one))];
}
