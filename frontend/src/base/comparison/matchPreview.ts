/** What a match made by hand would pair: the records of two calls, side by side. */
import type { LeafValues } from "./leaves";

export interface Record extends LeafValues {
  role: string;
  path: string;
}

/** How two records fit: by shape and dtype, in another dtype, in shapes that cannot be compared, or only one of them is there. */
export type Fit = "same" | "dtype" | "shape" | "alone";

export interface PreviewRow {
  role: string;
  path: string;
  target: Record | null;
  golden: Record | null;
  fit: Fit;
}

/** Records of the same role and place, in the target's order; those of one side alone last. */
export function previewRows(targets: readonly Record[], goldens: readonly Record[]): PreviewRow[] {
  const place = (leaf: Record) => `${leaf.role}\n${leaf.path}`;
  const others = new Map(goldens.map((leaf) => [place(leaf), leaf]));
  const rows: PreviewRow[] = targets.map((target) => {
    const golden = others.get(place(target)) ?? null;
    others.delete(place(target));
    return { role: target.role, path: target.path, target, golden, fit: fitOf(target, golden) };
  });
  const rest = [...others.values()].map(
    (golden): PreviewRow => ({ role: golden.role, path: golden.path, target: null, golden, fit: "alone" }),
  );
  return [...rows, ...rest];
}

function fitOf(target: Record, golden: Record | null): Fit {
  if (!golden) return "alone";
  if (JSON.stringify(target.shape) !== JSON.stringify(golden.shape)) return "shape";
  return target.dtype === golden.dtype && target.type === golden.type ? "same" : "dtype";
}
