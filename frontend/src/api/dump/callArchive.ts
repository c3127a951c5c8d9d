import { useMutation, useQuery } from "@tanstack/react-query";
import { api, readReply } from "../client";
import type { Unit } from "../records";

/** A call, and the comparison whose plots go into its archive. */
export interface ArchiveOf {
  dump: string;
  unit: Unit;
  name: string;
  comparison: string | null;
}

function parameters({ dump, unit, name, comparison }: ArchiveOf) {
  return { path: { dump_id: dump, name }, query: { ...unit, ...(comparison === null ? {} : { comparison }) } };
}

/** What the archive of a call will hold, and its size. */
export function useArchiveContents(of: ArchiveOf) {
  return useQuery({
    queryKey: ["dumps", "data", of.dump, "handover", of.unit, of.name, of.comparison],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/dumps/{dump_id}/handover/{name}", { params: parameters(of), signal })),
    retry: false,
  });
}

/** Makes the archive. */
export function useMakeArchive() {
  return useMutation({
    mutationFn: (of: ArchiveOf) =>
      readReply(api().POST("/api/dumps/{dump_id}/handover/{name}", { params: parameters(of), parseAs: "blob" })),
  });
}
