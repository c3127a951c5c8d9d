/** A job as it goes: server-sent events, and polling wherever a proxy swallows them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, apiUrl, take } from "./client";
import type { Job } from "./types";

const OVER = new Set<Job["status"]>(["done", "failed", "cancelled"]);
const POLL_MS = 1500;

export function isOver(job: Job | undefined): boolean {
  return job !== undefined && OVER.has(job.status);
}

/** The job's present state; `onOver` is called once when it ends while this screen is open. */
export function useJob(id: string | null, onOver: (job: Job) => void): Job | undefined {
  const client = useQueryClient();
  const { data } = useQuery({
    queryKey: ["jobs", id],
    queryFn: ({ signal }) => take(api().GET("/api/jobs/{job_id}", { params: { path: { job_id: id ?? "" } }, signal })),
    enabled: id !== null,
    refetchInterval: ({ state }) => (isOver(state.data) ? false : POLL_MS),
  });
  const over = isOver(data);
  const told = useRef<string | null>(null);

  useEffect(() => {
    if (id === null || over || typeof EventSource === "undefined") return;
    const source = new EventSource(apiUrl("jobs", id, "events"), { withCredentials: true });
    const take = (event: MessageEvent<string>) => {
      client.setQueryData(["jobs", id], JSON.parse(event.data) as Job);
    };
    for (const name of ["progress", "done"]) source.addEventListener(name, take);
    // "failed" is the server's event; a broken connection is an "error" and the poll goes on meanwhile.
    source.addEventListener("failed", take);
    return () => source.close();
  }, [client, id, over]);

  useEffect(() => {
    if (!data || !over || told.current === data.id) return;
    told.current = data.id;
    onOver(data);
  }, [data, over, onOver]);

  return data;
}
