/** People's notes on calls, kept with the pair of dumps. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, readReply } from "../client";
import { comparisonPath } from "../records";
import type { NodeNote } from "../types";

export const STANDINGS = ["accepted", "known", "ticket", "note"] as const;
export type Standing = (typeof STANDINGS)[number];

/** Most notes of one reply. A pair of dumps may have four times as many; the list then does not mark the newest. */
const SHOWN = 500;

export type NotesByNode = ReadonlyMap<string, NodeNote>;

const NO_NOTES: NotesByNode = new Map();

function notesKey(id: string) {
  return ["comparisons", "data", id, "notes"];
}

/** Notes by name of the call; `settled` once it is known whether there are any. */
export function useNotes(id: string): { notes: NotesByNode; settled: boolean } {
  const found = useQuery({
    queryKey: notesKey(id),
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/notes", {
          params: { path: comparisonPath(id), query: { limit: SHOWN } },
          signal,
        }),
      ),
  });
  const items = found.data?.items;
  const notes = useMemo(() => (items ? new Map(items.map((note) => [note.node, note])) : NO_NOTES), [items]);
  return { notes, settled: !found.isPending };
}

/** Writes the note on a call, or deletes it (null). */
export function useWriteNote(id: string, node: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (note: { standing: Standing; text: string } | null): Promise<void> => {
      const params = { path: { ...comparisonPath(id), name: node } };
      if (note === null) await readReply(api().DELETE("/api/comparisons/{comparison_id}/notes/{name}", { params }));
      else await readReply(api().PUT("/api/comparisons/{comparison_id}/notes/{name}", { params, body: note }));
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ["comparisons", "data", id] }),
  });
}
