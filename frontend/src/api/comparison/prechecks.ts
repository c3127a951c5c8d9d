/** What pre-checks say of calls run alone: kept with a dump, shown beside its comparisons. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, apiUrl, take } from "../client";
import { of, type Unit } from "../records";
import type { Job, UnitPrecheck } from "../types";

export type Side = "target" | "golden";
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
      take(
        api().GET("/api/comparisons/{comparison_id}/prechecks", {
          params: { path: of(id), query: unit ?? {} },
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
export function useAlone(id: string, unit: Unit | null, name: string | null) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "prechecks", unit, name],
    queryFn: ({ signal }) =>
      take(
        api().GET("/api/comparisons/{comparison_id}/prechecks/{name}", {
          params: { path: { ...of(id), name: name ?? "" }, query: unit ?? {} },
          signal,
        }),
      ),
    enabled: unit !== null && name !== null,
  });
}

/** Of a dump: what is there, how to make one, and the job that does. */
export function useDumpPrecheck(dump: string) {
  return useQuery({
    queryKey: ["dumps", "prechecks", dump],
    queryFn: ({ signal }) =>
      take(api().GET("/api/dumps/{dump_id}/prechecks", { params: { path: { dump_id: dump } }, signal })),
  });
}

/** The command that makes one elsewhere and sends it to this server. */
export function serverCommand(command: string): string {
  const base = new URL(apiUrl("x"), window.location.href).href.replace(/\/api\/x$/, "");
  return command.replace(" URL/", ` ${base}/`);
}

/** Starts, ends and takes in pre-checks of a dump. */
export function usePrecheckActions(dump: string) {
  const client = useQueryClient();
  const params = { path: { dump_id: dump } };
  const told = async () => {
    await client.invalidateQueries({ queryKey: ["dumps", "prechecks", dump] });
    await client.invalidateQueries({ queryKey: ["comparisons", "data"] });
  };
  const run = useMutation({
    mutationFn: (device: string): Promise<{ job: Job["id"] | null }> =>
      take(api().POST("/api/dumps/{dump_id}/prechecks/run", { params, body: { device, steps: [], ranks: [] } })),
    onSuccess: told,
  });
  const cancel = useMutation({
    mutationFn: async (): Promise<void> => {
      await take(api().POST("/api/dumps/{dump_id}/prechecks/cancel", { params }));
    },
  });
  const send = useMutation({
    mutationFn: async (file: File): Promise<void> => {
      for (const text of pieces(await file.text()))
        await take(api().POST("/api/dumps/{dump_id}/prechecks", { params, body: { text } }));
    },
    onSuccess: told,
  });
  return { run, cancel, send, told };
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
