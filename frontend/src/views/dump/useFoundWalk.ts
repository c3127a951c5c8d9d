/** Ways between the calls where a number that is not finite, or at the limit of its dtype, was made or came in. */
import { fetchPlace } from "../../api/dump/nodes";
import { useBirths } from "../../api/dump/overflow";
import type { Unit } from "../../api/records";

/** Finds the next such call behind (1) or before (-1) a call; null where there is none. */
export function useFoundWalk(
  id: string,
  unit: Unit,
  notable: boolean,
): (from: string | null, delta: 1 | -1) => Promise<string | null> {
  const births = useBirths(id, unit, notable);
  return async (from, delta) => {
    const rows = births.data ?? [];
    if (rows.length === 0) return null;
    const own = rows.findIndex((row) => row.node === from);
    if (own >= 0) return rows[own + delta]?.node ?? null;
    const place = from === null ? -1 : await fetchPlace(id, unit, from);
    const behind = rows.filter((row) => (delta > 0 ? row.ordinal > place : row.ordinal < place));
    return (delta > 0 ? behind[0] : behind.at(-1))?.node ?? null;
  };
}
