/** Comparisons of checkpoints: start one, list them, and their tensors page by page. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { CheckpointSort, CheckpointState } from "../base/address/checkpoint";
import { api, readReply } from "./client";
import type { ListOrder, NewCheckpointDiff } from "./types";

const LIST_ROWS = 50;
const TENSOR_ROWS = 100;
const POLL_MS = 1500;

const NOUN = "checkpoint-diffs";

/** Newest first, whatever order is asked for. */
export function useCheckpointDiffs(q: string, _order: ListOrder = "-created") {
  return useInfiniteQuery({
    queryKey: [NOUN, "list", q],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/checkpoint-diffs", { params: { query: { q, cursor: pageParam, limit: LIST_ROWS } }, signal }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.items.some((row) => row.status === "pending")) ? POLL_MS : false,
  });
}

export function useCheckpointDiff(id: string) {
  return useQuery({
    queryKey: [NOUN, "one", id],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/checkpoint-diffs/{diff_id}", { params: { path: { diff_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data?.status === "pending" ? POLL_MS : false),
  });
}

export function useCheckpointSummary(id: string, enabled: boolean) {
  return useQuery({
    queryKey: [NOUN, "summary", id],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/checkpoint-diffs/{diff_id}/summary", { params: { path: { diff_id: id } }, signal })),
    enabled,
  });
}

/** Tensors by state among those that the search finds. */
export function useCheckpointCounts(id: string, q: string) {
  return useQuery({
    queryKey: [NOUN, "counts", id, q],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/checkpoint-diffs/{diff_id}/counts", {
          params: { path: { diff_id: id }, query: { q } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
}

interface Wanted {
  states: readonly CheckpointState[];
  q: string;
  sort: CheckpointSort;
}

export function useCheckpointTensors(id: string, { states, q, sort }: Wanted) {
  return useInfiniteQuery({
    queryKey: [NOUN, "tensors", id, states, q, sort],
    queryFn: ({ pageParam, signal }) =>
      readReply(
        api().GET("/api/checkpoint-diffs/{diff_id}/tensors", {
          params: {
            path: { diff_id: id },
            query: { state: [...states], q, sort, cursor: pageParam, limit: TENSOR_ROWS },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
  });
}

export function useCheckpointTensor(id: string, number: number) {
  return useQuery({
    queryKey: [NOUN, "tensor", id, number],
    queryFn: ({ signal }) =>
      readReply(
        api().GET("/api/checkpoint-diffs/{diff_id}/tensors/{number}", {
          params: { path: { diff_id: id, number } },
          signal,
        }),
      ),
  });
}

export function useDiffCheckpoints() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: NewCheckpointDiff) => readReply(api().POST("/api/checkpoint-diffs", { body })),
    onSuccess: () => client.invalidateQueries({ queryKey: [NOUN, "list"] }),
  });
}

export function useCancelCheckpointDiff() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      readReply(api().POST("/api/checkpoint-diffs/{diff_id}/cancel", { params: { path: { diff_id: id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: [NOUN] }),
  });
}

export function useDeleteCheckpointDiff() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      readReply(api().DELETE("/api/checkpoint-diffs/{diff_id}", { params: { path: { diff_id: id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: [NOUN, "list"] }),
  });
}
