/** Repeats what failed because the server did not answer, so no screen needs a click or a reload after a restart. */
import type { QueryClient } from "@tanstack/react-query";
import { ApiError, api, readReply, UNREACHABLE } from "./client";

const EVERY_MS = 3000;

/** Polls the server's health while a query is unanswered, and repeats such queries once it answers. */
export function watchConnection(client: QueryClient): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const lost = () => client.getQueryCache().findAll({ predicate: (query) => isUnreachable(query.state.error) });
  const ask = async () => {
    timer = undefined;
    if (lost().length === 0) return;
    try {
      await readReply(api().GET("/api/health"));
      await client.refetchQueries({ predicate: (query) => isUnreachable(query.state.error) });
    } catch {
      // Still away.
    }
    wait();
  };
  const wait = () => {
    if (timer === undefined && lost().length > 0) timer = setTimeout(() => void ask(), EVERY_MS);
  };
  const leave = client.getQueryCache().subscribe((event) => {
    if (event.type === "updated" && event.action.type === "error") wait();
  });
  return () => {
    leave();
    clearTimeout(timer);
  };
}

/** For requests outside of queries: repeats one while the server does not answer and the answer is wanted. */
export async function retryUntilReachable<T>(ask: () => Promise<T>, wanted: () => boolean): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (problem) {
      if (!isUnreachable(problem)) throw problem;
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
      if (!wanted()) throw problem;
    }
  }
}

/** Statuses with which a proxy reports an unreachable server. */
const AWAY: readonly number[] = [502, 503, 504];

function isUnreachable(problem: unknown): boolean {
  return problem instanceof ApiError && (problem.code === UNREACHABLE || AWAY.includes(problem.status));
}
