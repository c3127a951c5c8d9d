/** Targets of the data flow keys (p and P). */

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

/** The producer of what differs; if nothing differs, the producer of the first input that has a known one. */
export function findProducer(hop: Hop, differs: (cls: string) => boolean): string | null {
  if (hop.source) return hop.source.node.address;
  if (differs(hop.node.cls)) return null;
  return hop.inputs.find((input) => input.producer)?.producer?.address ?? null;
}

/** The first differing call that received this call's output, else the first such call. */
export function findConsumer(hop: Hop, differs: (cls: string) => boolean): string | null {
  const consumers = hop.consumers.map((one) => one.consumer);
  return (consumers.find((one) => differs(one.cls)) ?? consumers[0])?.address ?? null;
}
