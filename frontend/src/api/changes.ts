/** What screens change, as hooks. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, readReply } from "./client";
import { comparisonPath, type Noun } from "./records";
import type { CompareRequest, Comparison, ComparisonOptions } from "./types";

/** A change to one noun; lists and records of it are read again afterwards, which the change does not wait for. */
function useChange<In, Out>(noun: Noun, change: (input: In) => Promise<Out>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => void client.invalidateQueries({ queryKey: [noun] }),
  });
}

export function useRegisterDump() {
  return useChange("dumps", (path: string) => readReply(api().POST("/api/dumps", { body: { path } })));
}

/** Opens a result table of another tool as a comparison of its two sides. */
export function useOpenTable() {
  return useChange("comparisons", (path: string) => readReply(api().POST("/api/tables", { body: { path } })));
}

export function useRename(noun: Noun) {
  return useChange(noun, async ({ id, name }: { id: string; name: string }) => {
    const body = { name };
    if (noun === "dumps")
      await readReply(api().PATCH("/api/dumps/{dump_id}", { params: { path: { dump_id: id } }, body }));
    else
      await readReply(api().PATCH("/api/comparisons/{comparison_id}", { params: { path: comparisonPath(id) }, body }));
  });
}

export function useDelete(noun: Noun) {
  return useChange(noun, async (id: string) => {
    if (noun === "dumps") await readReply(api().DELETE("/api/dumps/{dump_id}", { params: { path: { dump_id: id } } }));
    else await readReply(api().DELETE("/api/comparisons/{comparison_id}", { params: { path: comparisonPath(id) } }));
  });
}

/** The same dumps under the same options once more, as a comparison of its own. */
export function useCompareAgain() {
  return useChange("comparisons", ({ target, golden, reference, options }: Comparison) =>
    readReply(
      api().POST("/api/comparisons", { body: { target, golden, reference, options: options as ComparisonOptions } }),
    ),
  );
}

export function useCompare() {
  return useChange("comparisons", (body: CompareRequest) => readReply(api().POST("/api/comparisons", { body })));
}

export function useSetPolicy(id: string) {
  return useChange("comparisons", (policy: string) =>
    readReply(
      api().PATCH("/api/comparisons/{comparison_id}", { params: { path: comparisonPath(id) }, body: { policy } }),
    ),
  );
}

export function useCancel() {
  return useChange("comparisons", (id: string) =>
    readReply(api().POST("/api/comparisons/{comparison_id}/cancel", { params: { path: comparisonPath(id) } })),
  );
}
