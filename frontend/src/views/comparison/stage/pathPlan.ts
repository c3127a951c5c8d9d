/** The parts of a path view, each with its key, and where they stand. */
import type { PathBox, PathEnd, PathView } from "../../../api/types";
import { layOut } from "../../../base/comparison/pathLayout";
import type { Translate } from "../../../texts/translation";
import { differs, errorWords, isEqual, itemWords } from "./callWords";

/** Pixels of a call, and of what is told in a word. */
export const HEIGHT = 38;
export const SMALL = 22;

export function keyOf(box: PathBox): string {
  return `call ${box.node.pair}`;
}

export function planPath(shown: PathView, t: Translate) {
  const boxes = shown.boxes.map((box) => ({ box, key: keyOf(box) }));
  const ends = shown.ends.map((end, index) => ({ end, key: `end ${index}` }));
  const more = shown.more.map((one) => ({ more: one, key: `more ${one.hop}` }));
  const lines = [
    ...shown.passages.map((one) => ({
      from: `call ${one.maker}`,
      to: `call ${one.reader}`,
      word: one.word as string,
      way: one.way,
      differs: differs(one),
      error: errorWords(one, t),
      item: itemWords(one.item, t),
    })),
    ...ends.map(({ end, key }) => ({
      from: key,
      to: `call ${end.reader}`,
      word: end.word as string,
      way: false,
      differs: differs(end),
      error: end.word === "sent" ? "" : isEqual(end) ? "=" : errorWords(end, t),
      item: itemWords(end.item, t),
    })),
  ];
  const orders = new Map(boxes.map(({ box }) => [box.node.pair, box]));
  const hopOf = (end: PathEnd) => (orders.get(end.reader)?.hop ?? 0) - 1;
  const nodes = [
    ...boxes.map(({ box, key }) => ({ key, order: box.node.order, height: HEIGHT, hop: box.hop })),
    ...ends.map(({ end, key }) => ({
      key,
      order: (orders.get(end.reader)?.node.order ?? 0) - 0.5,
      height: SMALL,
      hop: hopOf(end),
    })),
    ...more.map(({ more: one, key }) => ({
      key,
      order: one.hop < 0 ? -1 : Number.MAX_SAFE_INTEGER,
      height: SMALL,
      hop: one.hop,
    })),
  ];
  const layout = layOut(nodes, lines, shown.hops);
  const walked = [...boxes, ...more].map(({ key }) => ({
    key,
    column: layout.boxes.get(key)?.column ?? 0,
    top: layout.boxes.get(key)?.top ?? 0,
  }));
  return { boxes, ends, more, lines, layout, walked };
}
