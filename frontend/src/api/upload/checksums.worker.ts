import { check } from "../../base/upload/checksums";
import type { Asked, Told } from "./checksums";

self.onmessage = async ({ data: { id, content, sizes } }: MessageEvent<Asked>) => {
  const checked = await check(content, sizes).catch(() => null);
  self.postMessage({ id, checked } satisfies Told, { transfer: checked ? [checked.bytes] : [] });
};
