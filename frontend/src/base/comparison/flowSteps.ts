/** Where the keys of data flow lead. */

interface Called {
  address: string;
  cls: string;
}

interface Hop {
  node: Called;
  inputs: readonly { producer: Called | null }[];
  consumers: readonly { consumer: Called }[];
  source: { node: Called } | null;
}

/** Back along what differs; of a call of which nothing differs to what made its first input that is known. */
export function findProducer(hop: Hop, differs: (cls: string) => boolean): string | null {
  if (hop.source) return hop.source.node.address;
  if (differs(hop.node.cls)) return null;
  return hop.inputs.find((input) => input.producer)?.producer?.address ?? null;
}

/** On to the first call that differs and received what this one made, else to the first one at all. */
export function findConsumer(hop: Hop, differs: (cls: string) => boolean): string | null {
  const consumers = hop.consumers.map((one) => one.consumer);
  return (consumers.find((one) => differs(one.cls)) ?? consumers[0])?.address ?? null;
}
