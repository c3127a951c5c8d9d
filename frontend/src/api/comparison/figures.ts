/** Figures of a comparison, the files behind them, and single values. */
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { api, apiUrl, readReply } from "../client";
import { comparisonPath, type Unit } from "../records";

export interface FigureQuery {
  name: string;
  node: string | null;
  pair: number | null;
  log: boolean | null;
  axes: readonly number[] | null;
  reduce: "max" | "rms";
  ecdf: boolean;
}

function figureParams(unit: Unit | null, { node, pair, log, axes, reduce, ecdf }: FigureQuery) {
  return { ...unit, node, pair, log, axes: axes?.join(",") ?? null, reduce, ...(ecdf ? { ecdf } : {}) };
}

export function figureOptions(id: string, unit: Unit | null, query: FigureQuery | null) {
  return queryOptions({
    queryKey: ["comparisons", "data", id, "figure", unit, query],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/figures/{name}", {
          params: {
            path: { ...comparisonPath(id), name: query?.name ?? "" },
            query: query === null ? {} : figureParams(unit, query),
          },
          signal,
        }),
      ),
  });
}

/** `query` null: no figure is shown. */
export function useFigure(id: string, unit: Unit | null, query: FigureQuery | null) {
  return useQuery({
    ...figureOptions(id, unit, query),
    enabled: unit !== null && query !== null,
    placeholderData: keepPreviousData,
  });
}

/** Address of the numbers behind a figure. */
export function figureCsvUrl(id: string, unit: Unit | null, query: FigureQuery): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(figureParams(unit, query))) {
    if (value !== null && value !== undefined) params.set(key, String(value));
  }
  return `${apiUrl("comparisons", id, "figures", `${query.name}.csv`)}?${params}`;
}

export interface ValuesQuery {
  pair: number;
  /** null: the server chooses a telling element and names it in its answer. */
  at: readonly number[] | null;
  axes: readonly number[] | null;
  rows: number;
  columns: number;
}

/** Index of the worst element of a part of a tensor pair; `part`: dimension, first index and the one behind the last. */
export async function fetchWorst(
  id: string,
  pair: number,
  part: readonly (readonly [dimension: number, start: number, stop: number])[],
): Promise<number[] | null> {
  const within = part.map(([dimension, start, stop]) => `${dimension}:${start}-${stop}`).join(",");
  const found = await readReply(
    api().GET("/api/comparisons/{comparison_id}/pairs/{pair_id}/values", {
      params: { path: { ...comparisonPath(id), pair_id: pair }, query: { within, rows: 1, columns: 1 } },
    }),
  );
  return found.at;
}

/** Values of a tensor pair around one element. */
export function useValues(id: string, query: ValuesQuery | null) {
  return useQuery({
    queryKey: ["comparisons", "data", id, "values", query],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/comparisons/{comparison_id}/pairs/{pair_id}/values", {
          params: {
            path: { ...comparisonPath(id), pair_id: query?.pair ?? 0 },
            query:
              query === null
                ? {}
                : {
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
