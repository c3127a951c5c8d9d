/** Dtypes and shapes of both sides of a tensor, written once where they are the same. */
import type { CheckpointTensor } from "../../api/types";

export function formText({ target_dtype: target, golden_dtype: golden }: CheckpointTensor): string {
  return both(short(target), short(golden));
}

export function shapeText({ target_shape: target, golden_shape: golden }: CheckpointTensor): string {
  return both(sizes(target), sizes(golden));
}

export function indexText(index: readonly number[] | null): string {
  return index === null ? "—" : `[${index.join(", ")}]`;
}

function both(target: string | null, golden: string | null): string {
  return [...new Set([target, golden].filter((side) => side !== null))].join(" / ");
}

function short(dtype: string | null): string | null {
  return dtype === null ? null : dtype.replace(/^torch\./, "");
}

function sizes(shape: readonly number[] | null): string | null {
  return shape === null ? null : indexText(shape);
}
