/** Where the boxes of a path view stand and how its lines run: one column per step, few crossings, lines beside boxes. */

export interface PathNode {
  key: string;
  /** Place in call order: producers have lower ones. */
  order: number;
  height: number;
  /** Steps before (negative) or after the middle. */
  hop: number;
}

export interface PathLine {
  from: string;
  to: string;
}

export interface Point {
  x: number;
  y: number;
}

export interface PathLayout {
  /** First column, 0 or negative; the middle is in column 0. */
  first: number;
  columns: number;
  height: number;
  /** Column and upper edge of each box. */
  boxes: ReadonlyMap<string, { column: number; top: number }>;
  /** Of each line the heights at which it leaves, passes between columns, and arrives. */
  lines: { from: string; to: string; stops: { column: number; y: number }[] }[];
}

const GAP = 12;
/** Height kept free for a line that passes a column. */
const PASSAGE = 16;
const SWEEPS = 6;

interface Slot {
  key: string;
  height: number;
  order: number;
}

/** Columns by the longest way, so that lines lead from left to right; at most `hops` on each side. */
export function findColumns(
  nodes: readonly PathNode[],
  lines: readonly PathLine[],
  hops: number,
): ReadonlyMap<string, number> {
  const columns = new Map<string, number>(nodes.filter(({ hop }) => hop === 0).map(({ key }) => [key, 0]));
  for (const side of [1, -1]) {
    const mine = nodes.filter(({ hop }) => hop * side > 0).sort((a, b) => (a.order - b.order) * side);
    for (const { key, hop } of mine) {
      const nearer = lines
        .filter((line) => (side > 0 ? line.to : line.from) === key)
        .map((line) => columns.get(side > 0 ? line.from : line.to))
        .filter((column) => column !== undefined && column * side >= 0)
        .map((column) => Math.abs(column as number) + 1);
      columns.set(key, side * Math.min(Math.max(hops, Math.abs(hop)), Math.max(Math.abs(hop), ...nearer)));
    }
  }
  return columns;
}

export function layOut(nodes: readonly PathNode[], lines: readonly PathLine[], hops: number): PathLayout {
  const columns = findColumns(nodes, lines, hops);
  const first = Math.min(0, ...columns.values());
  const last = Math.max(0, ...columns.values());
  const slots = new Map<number, Slot[]>();
  for (let column = first; column <= last; column += 1) slots.set(column, []);
  for (const { key, height, order } of nodes) slots.get(columns.get(key) ?? 0)?.push({ key, height, order });
  // A line over several columns keeps a passage free in each.
  const chains = lines.map((line, index) => {
    const [start, end] = [columns.get(line.from) ?? 0, columns.get(line.to) ?? 0];
    const stops = [{ column: start, key: line.from }];
    for (let column = start + 1; column < end; column += 1) {
      const key = `line ${index} ${column}`;
      const order = nodes.find((node) => node.key === line.from)?.order ?? 0;
      slots.get(column)?.push({ key, height: PASSAGE, order });
      stops.push({ column, key });
    }
    stops.push({ column: end, key: line.to });
    return { ...line, stops };
  });
  const beside = new Map<string, string[]>();
  for (const { stops } of chains) {
    stops.slice(1).forEach(({ key }, place) => {
      const before = stops[place]?.key ?? "";
      beside.set(key, [...(beside.get(key) ?? []), before]);
      beside.set(before, [...(beside.get(before) ?? []), key]);
    });
  }
  for (const column of slots.values()) column.sort((a, b) => a.order - b.order);
  const middles = new Map<string, number>();
  const stack = (column: readonly Slot[]) => {
    const total = column.reduce((sum, { height }) => sum + height + GAP, -GAP);
    let top = -total / 2;
    for (const { key, height } of column) {
      middles.set(key, top + height / 2);
      top += height + GAP;
    }
    return total;
  };
  for (const column of slots.values()) stack(column);
  const outward = [...slots.keys()].sort((a, b) => Math.abs(a) - Math.abs(b));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const number of sweep % 2 === 0 ? outward : [...outward].reverse()) {
      const column = slots.get(number) ?? [];
      const wanted = new Map(column.map((slot) => [slot.key, mean(beside.get(slot.key), middles)]));
      column.sort((a, b) => (wanted.get(a.key) ?? 0) - (wanted.get(b.key) ?? 0) || a.order - b.order);
      stack(column);
    }
  }
  const height = Math.max(...[...slots.values()].map((column) => stack(column)), 0);
  const shift = height / 2;
  const boxes = new Map(
    nodes.map(({ key, height: own }) => {
      const top = Math.round((middles.get(key) ?? 0) + shift - own / 2);
      return [key, { column: columns.get(key) ?? 0, top }];
    }),
  );
  return {
    first,
    columns: last - first + 1,
    height: Math.ceil(height),
    boxes,
    lines: chains.map(({ from, to, stops }) => ({
      from,
      to,
      stops: stops.map(({ column, key }) => ({ column, y: (middles.get(key) ?? 0) + shift })),
    })),
  };
}

function mean(keys: readonly string[] | undefined, middles: ReadonlyMap<string, number>): number {
  if (!keys?.length) return 0;
  return keys.reduce((sum, key) => sum + (middles.get(key) ?? 0), 0) / keys.length;
}

/** Moves labels of one gap apart, in their order from top to bottom, so that none covers another. */
export function spread(wanted: readonly number[], least: number): number[] {
  const order = wanted.map((_, place) => place).sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0));
  const found = [...wanted];
  for (let turn = 0; turn < 20; turn += 1) {
    let moved = false;
    order.slice(1).forEach((here, place) => {
      const before = order[place] ?? here;
      const lack = least - ((found[here] ?? 0) - (found[before] ?? 0));
      if (lack <= 0.5) return;
      found[here] = (found[here] ?? 0) + lack / 2;
      found[before] = (found[before] ?? 0) - lack / 2;
      moved = true;
    });
    if (!moved) break;
  }
  return found;
}

/** A smooth line through points from left to right; between two in one column an arc at its right side. */
export function drawLine(points: readonly Point[], bend: number): string {
  const [start, ...rest] = points;
  if (!start) return "";
  let path = `M${round(start.x)} ${round(start.y)}`;
  let last = start;
  for (const point of rest) {
    const reach = point.x > last.x ? (point.x - last.x) / 2 : bend;
    path += `C${round(last.x + reach)} ${round(last.y)} ${round(point.x - (point.x > last.x ? reach : -reach))} ${round(point.y)} ${round(point.x)} ${round(point.y)}`;
    last = point;
  }
  return path;
}

function round(number: number): number {
  return Math.round(number * 10) / 10;
}
