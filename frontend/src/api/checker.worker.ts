import { check } from "../base/checking";
import type { Asked, Told } from "./checker";

self.onmessage = async ({ data: { id, content, sizes } }: MessageEvent<Asked>) => {
  const checked = await check(content, sizes).catch(() => null);
  self.postMessage({ id, checked } satisfies Told, { transfer: checked ? [checked.bytes] : [] });
};
