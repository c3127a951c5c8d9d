import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { useUploadRoom } from "../../api/records";
import { type Progress, startUpload, type Upload } from "../../api/upload/sendUpload";
import { formatBytes } from "../../base/numbers/format";
import { type Bundle, groupIntoDumps, type PickedFile } from "../../base/upload/pickedFiles";
import { translate } from "../../texts/translation";

const NOTHING: Progress = { sent: 0, speed: null, lost: false };

export interface UploadLine {
  key: number;
  bundle: Bundle;
  progress: Progress;
  state: "sending" | "sent" | "failed";
  problem: unknown;
  /** Id of the dump, once it is sent. */
  dump: string | null;
}

export interface Uploads {
  lines: UploadLine[];
  empty: boolean;
  /** Most bytes of one upload; null until the server has answered. */
  room: number | null;
  /** Keys of the lines, one per dump, in the order of `bundle`. */
  start: (files: readonly PickedFile[]) => number[];
  cancel: (key: number) => void;
  dismiss: (key: number) => void;
}

/** Uploads of this page: one line per dump. */
export function useUploads(): Uploads {
  const client = useQueryClient();
  const [lines, setLines] = useState<UploadLine[]>([]);
  const [empty, setEmpty] = useState(false);
  const told = useUploadRoom().data;
  const room = told ? Math.min(told.limit, told.free) : null;
  const running = useRef(new Map<number, Upload>());
  const next = useRef(1);

  const change = useCallback((key: number, part: Partial<UploadLine>) => {
    setLines((all) => all.map((line) => (line.key === key ? { ...line, ...part } : line)));
  }, []);

  const start = useCallback(
    (files: readonly PickedFile[]) => {
      const bundles = groupIntoDumps(files);
      setEmpty(bundles.length === 0);
      const keys: number[] = [];
      for (const one of bundles) {
        const key = next.current++;
        keys.push(key);
        const line = { key, bundle: one, progress: NOTHING, state: "sending" as const, problem: null, dump: null };
        if (room !== null && one.bytes > room) {
          const [size, most] = [formatBytes(one.bytes), formatBytes(room)];
          const problem = new Error(translate("home.tooLarge", { size, room: most }));
          setLines((all) => [{ ...line, state: "failed", problem }, ...all]);
          continue;
        }
        setLines((all) => [line, ...all]);
        const sending = startUpload(one, (progress) => change(key, { progress }));
        running.current.set(key, sending);
        sending.done
          .then(({ id }) => {
            change(key, { state: "sent", dump: id });
            void client.invalidateQueries({ queryKey: ["dumps"] });
          })
          .catch((problem: unknown) => {
            if (problem instanceof ApiError && problem.code === "cancelled") {
              setLines((all) => all.filter((line) => line.key !== key));
            } else change(key, { state: "failed", problem });
          })
          .finally(() => {
            running.current.delete(key);
            void client.invalidateQueries({ queryKey: ["uploads"] });
          });
      }
      return keys;
    },
    [change, client, room],
  );

  const cancel = useCallback((key: number) => running.current.get(key)?.abort(), []);
  const dismiss = useCallback((key: number) => setLines((all) => all.filter((line) => line.key !== key)), []);
  return useMemo(() => ({ lines, empty, room, start, cancel, dismiss }), [lines, empty, room, start, cancel, dismiss]);
}
