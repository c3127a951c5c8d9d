/** Results of pre-checks, which run calls alone; kept with a dump and shown in its comparisons. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Side } from "../../base/comparison/sides";
import { api, apiUrl, readReply } from "../client";
import { comparisonPath, type Unit } from "../records";
import type { Job, UnitPrecheck } from "../types";

/** Sides whose call fails alone, by address of the call. */
export type FailingCalls = ReadonlyMap<string, readonly Side[]>;

const NO_CALLS: FailingCalls = new Map();
/** Characters of a file that are sent at once. */
const PIECE = 2_000_000;

/** Of one step and rank: numbers of both sides, and which calls fail alone. */
export function useUnitPrecheck(id: string, unit: Unit | null): { checked?: UnitPrecheck; failing: FailingCalls } {
  const { data } = useQuery({
    queryKey: ["comparisons", "data", id, "prechecks", unit],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/prechecks", {
          params: { path: comparisonPath(id), query: unit ?? {} },
          signal,
        }),
      ),
    enabled: unit !== null,
  });
  const failing = useMemo(() => {
    if (!data || data.failing.length === 0) return NO_CALLS;
    const calls = new Map<string, Side[]>();
    for (const { node, side } of data.failing) calls.set(node, [...(calls.get(node) ?? []), side]);
    return calls;
  }, [data]);
  return { checked: data, failing };
}

/** Of one call, both sides. */
export function useCallPrecheck(id: string, unit: Unit | null, name: string | null) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "prechecks", unit, name],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/prechecks/{name}", {
          params: { path: { ...comparisonPath(id), name: name ?? "" }, query: unit ?? {} },
          signal,
        }),
      ),
    enabled: unit !== null && name !== null,
  });
}

/** Of one call of a dump, and how many calls of its step and rank have a result. */
export function useCallAlone(dump: string, unit: Unit, name: string | null) {
  return useQuery({
    queryKey: ["dumps", "prechecks", dump, unit, name],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/prechecks/{name}", {
          params: { path: { dump_id: dump, name: name ?? "" }, query: unit },
          signal,
        }),
      ),
    enabled: name !== null,
  });
}

/** A dump's pre-check: its size, the command that makes one, and the job that makes one now. */
export function useDumpPrecheck(dump: string) {
  return useQuery({
    queryKey: ["dumps", "prechecks", dump],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/dumps/{dump_id}/prechecks", { params: { path: { dump_id: dump } }, signal })),
  });
}

/** The command that makes a pre-check elsewhere and sends it to this server. */
export function serverCommand(command: string): string {
  const base = new URL(apiUrl("x"), window.location.href).href.replace(/\/api\/x$/, "");
  return command.replace(" URL/", ` ${base}/`);
}

/** Starts, cancels and imports pre-checks of a dump. */
export function usePrecheckActions(dump: string) {
  const client = useQueryClient();
  const params = { path: { dump_id: dump } };
  const refresh = async () => {
    await client.invalidateQueries({ queryKey: ["dumps", "prechecks", dump] });
    await client.invalidateQueries({ queryKey: ["dumps", "data", dump, "nodes"] });
    await client.invalidateQueries({ queryKey: ["comparisons", "data"] });
  };
  const run = useMutation({
    mutationFn: (device: string): Promise<{ job: Job["id"] | null }> =>
      readReply(api().POST("/api/dumps/{dump_id}/prechecks/run", { params, body: { device, steps: [], ranks: [] } })),
    onSuccess: refresh,
  });
  const cancel = useMutation({
    mutationFn: async (): Promise<void> => {
      await readReply(api().POST("/api/dumps/{dump_id}/prechecks/cancel", { params }));
    },
  });
  const send = useMutation({
    mutationFn: async (file: File): Promise<void> => {
      for (const text of pieces(await file.text()))
        await readReply(api().POST("/api/dumps/{dump_id}/prechecks", { params, body: { text } }));
    },
    onSuccess: refresh,
  });
  return { run, cancel, send, told: refresh };
}

/** Texts of about PIECE characters, each with the line that names the device before it. */
function pieces(text: string): string[] {
  const lines = text.split("\n").filter((line) => line !== "");
  const head = lines.shift() ?? "";
  const made: string[] = [];
  let held = head;
  for (const line of lines) {
    if (held !== head && held.length + line.length > PIECE) {
      made.push(held);
      held = head;
    }
    held += `\n${line}`;
  }
  return [...made, held];
}
