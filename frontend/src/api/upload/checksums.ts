/** Reads and checks what is sent beside the page, which stays free, and while what was read before is on its way. */
import { type Checked, type CheckReply, type CheckRequest, check as here } from "../../base/upload/checksums";

interface Waiting extends CheckRequest {
  resolve: (checked: Checked | Promise<Checked>) => void;
  reject: (problem: Error) => void;
}

let worker: Worker | null | undefined;
let asked = 0;
const waiting = new Map<number, Waiting>();

/** As `check` of base/upload/checksums, in a worker; on the page where none can be had. */
export const check: typeof here = (content, sizes) => {
  if (worker === undefined) worker = start();
  if (worker === null) return here(content, sizes);
  const id = asked++;
  const answered = new Promise<Checked>((resolve, reject) => waiting.set(id, { id, content, sizes, resolve, reject }));
  worker.postMessage({ id, content, sizes } satisfies CheckRequest);
  return answered;
};

function start(): Worker {
  const started = new Worker(new URL("./checksums.worker.ts", import.meta.url), { type: "module" });
  started.onmessage = ({ data: { id, checked } }: MessageEvent<CheckReply>) => {
    const one = waiting.get(id);
    waiting.delete(id);
    if (checked) one?.resolve(checked);
    else one?.reject(new Error("it cannot be read"));
  };
  started.onerror = () => {
    worker = null;
    for (const { content, sizes, resolve } of waiting.values()) resolve(here(content, sizes));
    waiting.clear();
  };
  return started;
}
