/** Module trees, of a dump or of a comparison. */
import { api, readReply } from "./client";
import { comparisonPath, type Noun, PAGE_ROWS, type Unit } from "./records";
import type { Page, TreeLevels, TreeRow } from "./types";

/** Children of one row of a tree: the first ones, those that a cursor leads to, or the last ones. */
export async function fetchTree(
  noun: Noun,
  id: string,
  unit: Unit,
  parent: number | null,
  where: { cursor?: string; end?: boolean },
): Promise<Page<TreeRow>> {
  const query = { ...unit, parent, ...where, limit: PAGE_ROWS };
  const reply =
    noun === "dumps"
      ? await readReply(api().GET("/api/dumps/{dump_id}/tree", { params: { path: { dump_id: id }, query } }))
      : await readReply(
          api().GET("/api/comparisons/{comparison_id}/tree", { params: { path: comparisonPath(id), query } }),
        );
  return "items" in reply ? reply : { items: [], next: null, total: 0 };
}

/** The path to a node from a given level down, each level with its neighbouring rows. */
export function fetchLevels(noun: Noun, id: string, unit: Unit, name: string, from: number): Promise<TreeLevels> {
  const query = { ...unit, reveal: name, from };
  return noun === "dumps"
    ? readReply(api().GET("/api/dumps/{dump_id}/tree/levels", { params: { path: { dump_id: id }, query } }))
    : readReply(
        api().GET("/api/comparisons/{comparison_id}/tree/levels", { params: { path: comparisonPath(id), query } }),
      );
}

/** Entries from the top of a tree down to a node. */
export async function fetchReveal(noun: Noun, id: string, unit: Unit, name: string): Promise<number[]> {
  const query = { ...unit, reveal: name };
  const reply =
    noun === "dumps"
      ? await readReply(api().GET("/api/dumps/{dump_id}/tree", { params: { path: { dump_id: id }, query } }))
      : await readReply(
          api().GET("/api/comparisons/{comparison_id}/tree", { params: { path: comparisonPath(id), query } }),
        );
  return "path" in reply ? reply.path : [];
}
