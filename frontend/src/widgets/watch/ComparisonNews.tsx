import type { Comparison } from "../../api/types";
import { useComparisonNews } from "./jobNews";

/** Tells by the title of the page how a comparison goes on. It shows nothing in the page, and so comes behind the answer. */
export function ComparisonNews({ comparison }: { comparison: Comparison | undefined }) {
  useComparisonNews(comparison);
  return null;
}
