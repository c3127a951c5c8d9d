/** The first origin by statistics, which a job names in its message while it still reads tensors. */
const MARK = "; provisional: ";

/** What a job has done, and the node that it names; null where it names none. */
export function splitMessage(message: string): readonly [done: string, node: string | null] {
  const at = message.indexOf(MARK);
  return at < 0 ? [message, null] : [message.slice(0, at), message.slice(at + MARK.length)];
}
