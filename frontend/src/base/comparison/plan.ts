/** The plan that joins the ranks of both sides: as a line of text, and changes made in the editor. */
import { SIDES, type Side } from "./sides";

export type Ranks = readonly (readonly (readonly number[])[])[];

/** Shards joined by +, stages by an arrow, replicas by &. */
export function ranksText(ranks: Ranks): string {
  return ranks.map((replica) => replica.map((stage) => stage.join("+")).join(" → ")).join(" & ");
}

/** Ways in which tensors were made, the most frequent first; "dimension 1" as its number. */
export function sortWays(
  counts: Readonly<Record<string, number>>,
): { way: string; dimension?: number; count: number }[] {
  return Object.entries(counts)
    .map(([key, count]) => {
      const place = /^dimension (\d+)$/.exec(key);
      return place ? { way: "dimension", dimension: Number(place[1]), count } : { way: key, count };
    })
    .sort((one, other) => other.count - one.count);
}

export interface PlanSide {
  ranks: number[][][];
  offsets: number[];
  chunks: number;
  context: number;
  sequence: string | null;
  experts: number;
}

export interface PlanUnit {
  rank: number;
  target: PlanSide;
  golden: PlanSide;
}

/** A dimension counted from 0, or what to do instead of joining. */
export type Way = number | "copy" | "sum" | "skip";

export interface PlanLayout {
  units: PlanUnit[];
  gradients: string | null;
  dimensions: { pattern: string; way: number | string }[];
}

/** A parallel configuration as launchers know it; null is left out. */
export interface Sizes {
  tp: number | null;
  cp: number | null;
  ep: number | null;
  pp: number | null;
  vpp: number | null;
  order: string;
}

export const NO_SIZES: Sizes = { tp: null, cp: null, ep: null, pp: null, vpp: null, order: "" };

/** The text of a plan (JSON is yaml): the server completes, checks and writes it as a person would. */
export function writeLayout({ units, gradients, dimensions }: PlanLayout): string {
  const sides = units.map((unit) => ({ rank: unit.rank, target: sideOf(unit.target), golden: sideOf(unit.golden) }));
  return JSON.stringify({ units: sides, ...rest(gradients, dimensions) });
}

/** A plan by the sizes of both sides; gradients and dimensions of the layout are kept. */
export function writeSizes(sizes: Readonly<Record<Side, Sizes>>, kept: PlanLayout | null): string {
  const sides = Object.fromEntries(
    SIDES.map((side) => [side, Object.fromEntries(Object.entries(sizes[side]).filter(([, size]) => size))]),
  );
  return JSON.stringify({ ...sides, ...rest(kept?.gradients ?? null, kept?.dimensions ?? []) });
}

function sideOf(side: PlanSide) {
  const { sequence, ...plain } = side;
  return sequence === null ? plain : { ...plain, sequence };
}

function rest(gradients: string | null, dimensions: PlanLayout["dimensions"]) {
  return {
    ...(gradients === null ? {} : { gradients }),
    ...(dimensions.length === 0
      ? {}
      : { dimensions: Object.fromEntries(dimensions.map(({ pattern, way }) => [pattern, way])) }),
  };
}

/** All ranks of a side, in the order of the plan. */
export function ranksOf(layout: PlanLayout, side: Side): number[] {
  return layout.units.flatMap((unit) => unit[side].ranks.flat(2));
}

/** Swaps two ranks of a side. */
export function swapRanks(layout: PlanLayout, side: Side, one: number, other: number): PlanLayout {
  const swap = (rank: number) => (rank === one ? other : rank === other ? one : rank);
  const units = layout.units.map((unit) => ({
    ...unit,
    [side]: {
      ...unit[side],
      ranks: unit[side].ranks.map((replica) => replica.map((stage) => stage.map(swap))),
    },
  }));
  return { ...layout, units };
}

/** Sets how a pattern is joined; null removes the pattern. A new pattern goes before the others. */
export function setWay(layout: PlanLayout, pattern: string, way: Way | null): PlanLayout {
  const there = layout.dimensions.some((entry) => entry.pattern === pattern);
  if (way === null) {
    return { ...layout, dimensions: layout.dimensions.filter((entry) => entry.pattern !== pattern) };
  }
  const dimensions = there
    ? layout.dimensions.map((entry) => (entry.pattern === pattern ? { pattern, way } : entry))
    : [{ pattern, way }, ...layout.dimensions];
  return { ...layout, dimensions };
}

/** `[32, 16] × 2`, or `[7, 16] + [6, 16]` where the parts are not alike. */
export function partsText(
  shape: readonly number[],
  dimension: number,
  sizes: readonly number[] | null,
  count: number,
): string {
  const part = (size: number) => `[${shape.map((length, place) => (place === dimension ? size : length)).join(", ")}]`;
  if (sizes !== null) return sizes.map(part).join(" + ");
  return `${part((shape[dimension] ?? 0) / count)} × ${count}`;
}
