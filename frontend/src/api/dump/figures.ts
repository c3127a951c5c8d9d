/** Figures of one dump, the files behind them, and values of one of its tensors. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Measure } from "../../base/address/address";
import { api, apiUrl, readReply } from "../client";
import type { Unit } from "../records";

export interface DumpFigureQuery {
  name: string;
  node: string | null;
  /** Number of a record of the call. */
  item: number | null;
  log: boolean | null;
  axes: readonly number[] | null;
  reduce: "max" | "rms";
  measure: Measure | null;
}

function figureParams(unit: Unit, { node, item, log, axes, reduce, measure }: DumpFigureQuery) {
  return { ...unit, node, item, log, axes: axes?.join(",") ?? null, reduce, measure };
}

/** `query` null: no figure is shown. */
export function useDumpFigure(id: string, unit: Unit, query: DumpFigureQuery | null) {
  return useQuery({
    queryKey: ["dumps", "data", id, "figure", unit, query],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/figures/{name}", {
          params: {
            path: { dump_id: id, name: query?.name ?? "" },
            query: query === null ? {} : figureParams(unit, query),
          },
          signal,
        }),
      ),
    enabled: query !== null,
    placeholderData: keepPreviousData,
  });
}

/** Address of the numbers behind a figure. */
export function dumpFigureCsvUrl(id: string, unit: Unit, query: DumpFigureQuery): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(figureParams(unit, query))) {
    if (value !== null && value !== undefined) params.set(key, String(value));
  }
  return `${apiUrl("dumps", id, "figures", `${query.name}.csv`)}?${params}`;
}

export interface DumpValuesQuery {
  item: number;
  /** null: the server chooses a telling element and names it in its answer. */
  at: readonly number[] | null;
  axes: readonly number[] | null;
  rows: number;
  columns: number;
}

/** Index of the largest or first not finite element of a part of a tensor. */
export async function fetchLargest(
  id: string,
  unit: Unit,
  item: number,
  part: readonly (readonly [dimension: number, start: number, stop: number])[],
): Promise<number[] | null> {
  const within = part.map(([dimension, start, stop]) => `${dimension}:${start}-${stop}`).join(",");
  const found = await readReply(
    api().GET("/api/dumps/{dump_id}/items/{item}/values", {
      params: { path: { dump_id: id, item }, query: { ...unit, within, rows: 1, columns: 1 } },
    }),
  );
  return found.at;
}

/** Values of a tensor around one element. */
export function useDumpValues(id: string, unit: Unit, query: DumpValuesQuery | null) {
  return useQuery({
    queryKey: ["dumps", "data", id, "values", unit, query],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/dumps/{dump_id}/items/{item}/values", {
          params: {
            path: { dump_id: id, item: query?.item ?? 0 },
            query:
              query === null
                ? {}
                : {
                    ...unit,
                    at: query.at?.join(",") ?? null,
                    axes: query.axes?.join(",") ?? null,
                    rows: query.rows,
                    columns: query.columns,
                  },
          },
          signal,
        }),
      ),
    enabled: query !== null,
    placeholderData: keepPreviousData,
  });
}
