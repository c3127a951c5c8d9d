import { useCallback, useEffect, useMemo, useState } from "react";
import { guessSides, SIDES, type Side } from "../../base/comparison/sides";
import { groupIntoDumps, type PickedFile } from "../../base/upload/pickedFiles";
import type { UploadLine, Uploads } from "./useUploads";

export interface PickedDump {
  id: string;
  name: string;
  /** Its place on the server: many dumps have the same name. */
  path: string;
}

/** The dumps to compare. */
export type PickedSides = Record<Side, PickedDump | null>;

/** What a widget needs that lets the user pick a side. */
export interface SidePicking {
  picked: PickedSides;
  onPick: (picked: PickedSides) => void;
}

export interface Sides {
  picked: PickedSides;
  pick: (picked: PickedSides) => void;
  /** A dump that the user brought for a side, as a path on the server. */
  bring: (side: Side, dump: PickedDump) => void;
  /** Files that the user brought, for a side; null: guessed from their names. */
  take: (files: readonly PickedFile[], side: Side | null) => void;
  /** The upload on its way to each side. */
  arriving: Readonly<Record<Side, UploadLine | null>>;
  /** The user brought both sides and both have arrived, so comparing can start. */
  brought: boolean;
  /** Forgets that both were brought: the comparison was started, or waits for a click. */
  settle: () => void;
}

const NOBODY: Record<Side, number | null> = { target: null, golden: null };
const NOTHING: PickedSides = { target: null, golden: null };
const NEITHER: Record<Side, boolean> = { target: false, golden: false };

/** The two dumps to compare: picked from those that are there, or brought, as files or as paths. */
export function useSides(uploads: Uploads): Sides {
  const [picked, pick] = useState<PickedSides>(NOTHING);
  const [lines, setLines] = useState(NOBODY);
  const [own, setOwn] = useState(NEITHER);

  const bring = useCallback((side: Side, dump: PickedDump) => {
    pick((now) => ({ ...now, [side]: dump }));
    setOwn((now) => ({ ...now, [side]: true }));
  }, []);

  const start = uploads.start;
  const take = useCallback(
    (files: readonly PickedFile[], side: Side | null) => {
      const keys = start(files);
      const names = groupIntoDumps(files).map(({ name }) => name);
      const [first, second] = names;
      if (side !== null && keys.length === 1) setLines((now) => ({ ...now, [side]: keys[0] ?? null }));
      else if (first !== undefined && second !== undefined && names.length === 2) {
        const [one, other] = guessSides(first, second);
        setLines((now) => ({ ...now, [one]: keys[0] ?? null, [other]: keys[1] ?? null }));
      }
    },
    [start],
  );

  const arriving = useMemo(() => {
    const line = (side: Side) =>
      uploads.lines.find((one) => one.key === lines[side] && one.state === "sending") ?? null;
    return { target: line("target"), golden: line("golden") };
  }, [lines, uploads.lines]);

  useEffect(() => {
    for (const side of SIDES) {
      if (lines[side] === null) continue;
      const line = uploads.lines.find((one) => one.key === lines[side]);
      if (line?.state === "sending") continue;
      if (line?.dump) bring(side, { id: line.dump, name: line.bundle.name, path: line.bundle.name });
      setLines((now) => ({ ...now, [side]: null }));
    }
  }, [lines, uploads.lines, bring]);

  const settle = useCallback(() => setOwn(NEITHER), []);
  const change = useCallback((next: PickedSides) => {
    pick(next);
    setOwn(NEITHER);
  }, []);
  const brought = own.target && own.golden && picked.target !== null && picked.golden !== null;
  return { picked, pick: change, bring, take, arriving, brought, settle };
}
