/** The state of a job, by polling: an event stream would hold one of the six connections that a browser keeps to a
    server, for every job in every tab, and with six of them everything else would wait. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, readReply } from "./client";
import type { Job } from "./types";

const OVER = new Set<Job["status"]>(["done", "failed", "cancelled"]);
const POLL_MS = 700;

export function isOver(job: Job | undefined): boolean {
  return job !== undefined && OVER.has(job.status);
}

/** The job's present state; `onOver` is called once when it ends while this screen is open. */
export function useJob(id: string | null, onOver: (job: Job) => void): Job | undefined {
  const { data } = useQuery({
    queryKey: ["jobs", id],
    queryFn: ({ signal }) =>
      readReply(api().GET("/api/jobs/{job_id}", { params: { path: { job_id: id ?? "" } }, signal })),
    enabled: id !== null,
    refetchInterval: ({ state }) => (isOver(state.data) ? false : POLL_MS),
  });
  const told = useRef<string | null>(null);

  useEffect(() => {
    if (!data || !isOver(data) || told.current === data.id) return;
    told.current = data.id;
    onOver(data);
  }, [data, onOver]);

  return data;
}
