import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

const health = vi.hoisted(() => ({ up: false, asked: 0 }));
vi.mock("../../src/api/client", async (original) => ({
  ...(await original<typeof import("../../src/api/client")>()),
  api: () => ({
    GET: () => {
      health.asked += 1;
      return health.up
        ? Promise.resolve({ data: {}, response: { ok: true } })
        : Promise.reject(new TypeError("Failed to fetch"));
    },
  }),
}));

import { ApiError, UNREACHABLE } from "../../src/api/client";
import { watchConnection } from "../../src/api/reconnect";

beforeEach(() => {
  vi.useFakeTimers();
  Object.assign(health, { up: false, asked: 0 });
});
afterEach(() => vi.useRealTimers());

function watched(problem: () => ApiError | null) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, networkMode: "always" } } });
  const stop = watchConnection(client);
  let asked = 0;
  const observer = new QueryObserver(client, {
    queryKey: ["node"],
    queryFn: () => {
      asked += 1;
      const found = problem();
      return found ? Promise.reject(found) : Promise.resolve("there");
    },
  });
  observer.subscribe(() => {});
  return { client, stop, asked: () => asked };
}

it("asks again for what found no server, once one answers", async () => {
  const away = new ApiError(0, UNREACHABLE, "", null);
  const { client, stop, asked } = watched(() => (health.up ? null : away));
  await vi.advanceTimersByTimeAsync(7000);
  expect([asked(), health.asked]).toEqual([1, 2]);
  health.up = true;
  await vi.advanceTimersByTimeAsync(3000);
  expect([asked(), client.getQueryData(["node"])]).toEqual([2, "there"]);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(health.asked).toBe(3);
  stop();
});

it("leaves alone what the server refused", async () => {
  const { stop, asked } = watched(() => new ApiError(404, "not_found", "", null));
  await vi.advanceTimersByTimeAsync(30_000);
  expect([asked(), health.asked]).toEqual([1, 0]);
  stop();
});
