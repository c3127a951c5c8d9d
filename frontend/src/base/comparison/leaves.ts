/** The cells of an item: their texts, and which differ between the two sides. */
import { exactReal, formatReal, type Real } from "../numbers/format";

export const STATISTICS = ["max", "min", "mean", "norm"] as const;
export type Statistic = (typeof STATISTICS)[number];

export interface LeafValues {
  dtype: string | null;
  type: string | null;
  shape: number[] | null;
  max: Real;
  min: Real;
  mean: Real;
  norm: Real;
  md5: string | null;
  value: unknown;
}

/** "float32 [2,6,8]"; "int" where there is no dtype. */
export function describeType(leaf: LeafValues | null): string {
  if (!leaf) return "";
  return describeTensor(leaf.dtype ?? leaf.type ?? "", leaf.shape);
}

/** `float32 [2,6]`. */
export function describeTensor(type: string, shape: readonly number[] | null): string {
  const plain = type.replace(/^torch\./, "");
  return shape ? `${plain} [${shape.join(",")}]` : plain;
}

export function hasStatistics(leaf: LeafValues | null): boolean {
  return leaf !== null && STATISTICS.some((name) => leaf[name] !== null && leaf[name] !== undefined);
}

/** Text of a value that is not a tensor's. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return value;
  if (typeof value === "number") return formatReal(value);
  return JSON.stringify(value);
}

/** Statistics that both sides have and that are not the same number. */
export function findDiffering(target: LeafValues | null, golden: LeafValues | null): Set<Statistic> {
  if (!target || !golden) return new Set();
  return new Set(STATISTICS.filter((name) => exactReal(target[name]) !== exactReal(golden[name])));
}
