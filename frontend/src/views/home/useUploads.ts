import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { type Upload, upload } from "../../api/upload";
import { type Bundle, bundle, type PickedFile } from "../../base/drop";

export interface UploadLine {
  key: number;
  bundle: Bundle;
  share: number;
  state: "sending" | "sent" | "failed";
  problem: unknown;
  /** Id of the dump, once it is sent. */
  dump: string | null;
}

export interface Uploads {
  lines: UploadLine[];
  empty: boolean;
  start: (files: readonly PickedFile[]) => void;
  cancel: (key: number) => void;
  dismiss: (key: number) => void;
}

/** Uploads of this page: one line per dump. */
export function useUploads(): Uploads {
  const client = useQueryClient();
  const [lines, setLines] = useState<UploadLine[]>([]);
  const [empty, setEmpty] = useState(false);
  const running = useRef(new Map<number, Upload>());
  const next = useRef(1);

  const change = useCallback((key: number, part: Partial<UploadLine>) => {
    setLines((all) => all.map((line) => (line.key === key ? { ...line, ...part } : line)));
  }, []);

  const start = useCallback(
    (files: readonly PickedFile[]) => {
      const bundles = bundle(files);
      setEmpty(bundles.length === 0);
      for (const one of bundles) {
        const key = next.current++;
        setLines((all) => [{ key, bundle: one, share: 0, state: "sending", problem: null, dump: null }, ...all]);
        const sending = upload(one.files, (share) => change(key, { share }));
        running.current.set(key, sending);
        sending.done
          .then(({ id }) => {
            change(key, { state: "sent", share: 1, dump: id });
            void client.invalidateQueries({ queryKey: ["dumps"] });
          })
          .catch((problem: unknown) => {
            if (problem instanceof ApiError && problem.code === "cancelled") {
              setLines((all) => all.filter((line) => line.key !== key));
            } else change(key, { state: "failed", problem });
          })
          .finally(() => running.current.delete(key));
      }
    },
    [change, client],
  );

  const cancel = useCallback((key: number) => running.current.get(key)?.abort(), []);
  const dismiss = useCallback((key: number) => setLines((all) => all.filter((line) => line.key !== key)), []);
  return useMemo(() => ({ lines, empty, start, cancel, dismiss }), [lines, empty, start, cancel, dismiss]);
}
