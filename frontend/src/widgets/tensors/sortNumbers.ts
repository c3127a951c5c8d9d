/** The tensors of a call in the order of one of their numbers. */
import type { Pair } from "../../api/types";
import type { NumberSort } from "../../base/address/address";
import { toNumber } from "../../base/numbers/format";

/**
 * A new list; of both sides the target's number counts, the golden's where that has none. NaN and what has no such number come last,
 * whichever way the others stand; equal ones keep their order.
 *
 * label: what the table calls an item
 */
export function sortNumbers(items: readonly Pair[], sort: NumberSort, label: (pair: Pair) => string): Pair[] {
  const falling = sort.startsWith("-");
  const column = sort.replace(/^-/, "") as "name" | "max" | "min" | "mean" | "norm";
  if (column === "name") {
    const order = new Intl.Collator(undefined, { numeric: true });
    return [...items].sort((a, b) => (falling ? -1 : 1) * order.compare(label(a), label(b)));
  }
  const value = (pair: Pair): number => {
    const number = toNumber(pair.target_leaf?.[column] ?? pair.golden_leaf?.[column] ?? null);
    return number ?? Number.NaN;
  };
  return [...items].sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    if (Number.isNaN(one) || Number.isNaN(other)) return Number(Number.isNaN(one)) - Number(Number.isNaN(other));
    return falling ? other - one || 0 : one - other || 0;
  });
}
