import { type CheckReply, type CheckRequest, check } from "../../base/upload/checksums";

self.onmessage = async ({ data: { id, content, sizes } }: MessageEvent<CheckRequest>) => {
  const checked = await check(content, sizes).catch(() => null);
  self.postMessage({ id, checked } satisfies CheckReply, { transfer: checked ? [checked.bytes] : [] });
};
