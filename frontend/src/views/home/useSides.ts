import { useCallback, useEffect, useMemo, useState } from "react";
import { fetchDump } from "../../api/records";
import { guessSides, SIDES, type Side } from "../../base/comparison/sides";
import { groupIntoDumps, type PickedFile } from "../../base/upload/pickedFiles";
import { useLocation } from "../../widgets/basic/navigation";
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

/** A dump that the user brought for a side and that cannot be one. */
export interface RefusedDump {
  name: string;
  /** Whether it arrived: then it could not be read, else it was not uploaded. */
  arrived: boolean;
  problem: unknown;
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
  /** What was brought for each side in vain, until something else is. */
  refused: Readonly<Record<Side, RefusedDump | null>>;
  /** Empties a side of a dump that cannot be read, and says so there. */
  refuse: (side: Side, dump: RefusedDump) => void;
  /** The user brought both sides and both have arrived, so comparing can start. */
  brought: boolean;
  /** Forgets that both were brought: the comparison was started, or waits for a click. */
  settle: () => void;
}

const NOBODY: Record<Side, number | null> = { target: null, golden: null };
const NOTHING: PickedSides = { target: null, golden: null };
const NEITHER: Record<Side, boolean> = { target: false, golden: false };
const NONE_REFUSED: Record<Side, RefusedDump | null> = { target: null, golden: null };

/** Sides that the address names, such as `?target=ID`: where a page about one dump led here. */
function useGivenSides(pick: (change: (now: PickedSides) => PickedSides) => void): void {
  const { search } = useLocation();
  useEffect(() => {
    const params = new URLSearchParams(search);
    let gone = false;
    for (const side of SIDES) {
      const id = params.get(side);
      if (!id) continue;
      fetchDump(id)
        .then(({ name, path }) => {
          if (!gone) pick((now) => ({ ...now, [side]: { id, name, path } }));
        })
        .catch(() => undefined); // a dump that was removed meanwhile is not picked
    }
    return () => {
      gone = true;
    };
  }, [search, pick]);
}

/** The two dumps to compare: picked from those that are there, or brought, as files or as paths. */
export function useSides(uploads: Uploads): Sides {
  const [picked, pick] = useState<PickedSides>(NOTHING);
  useGivenSides(pick);
  const [lines, setLines] = useState(NOBODY);
  const [own, setOwn] = useState(NEITHER);
  const [refused, setRefused] = useState(NONE_REFUSED);

  const bring = useCallback((side: Side, dump: PickedDump) => {
    pick((now) => ({ ...now, [side]: dump }));
    setOwn((now) => ({ ...now, [side]: true }));
    setRefused((now) => ({ ...now, [side]: null }));
  }, []);
  const refuse = useCallback((side: Side, dump: RefusedDump) => {
    pick((now) => ({ ...now, [side]: null }));
    setOwn((now) => ({ ...now, [side]: false }));
    setRefused((now) => ({ ...now, [side]: dump }));
  }, []);

  const start = uploads.start;
  const take = useCallback(
    (files: readonly PickedFile[], side: Side | null) => {
      const keys = start(files);
      setRefused(NONE_REFUSED);
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
      const name = line?.bundle.name ?? "";
      if (line?.dump) bring(side, { id: line.dump, name, path: name });
      else if (line?.state === "failed") refuse(side, { name, arrived: false, problem: line.problem });
      setLines((now) => ({ ...now, [side]: null }));
    }
  }, [lines, uploads.lines, bring, refuse]);

  const settle = useCallback(() => setOwn(NEITHER), []);
  const change = useCallback((next: PickedSides) => {
    pick(next);
    setOwn(NEITHER);
    setRefused(NONE_REFUSED);
  }, []);
  const brought = own.target && own.golden && picked.target !== null && picked.golden !== null;
  return { picked, pick: change, bring, take, arriving, refused, refuse, brought, settle };
}
