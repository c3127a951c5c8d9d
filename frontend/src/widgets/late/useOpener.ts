import { useEffect, useRef } from "react";

/** What opens a dialog that is there only while it is open gets the focus back; Mantine's own return needs one that stays.
 * Returns what is told of the click that opens it. */
export function useOpener(opened: boolean): (click: { currentTarget: HTMLElement }) => void {
  const opener = useRef<HTMLElement>(null);
  useEffect(() => {
    if (opened) return;
    opener.current?.focus({ preventScroll: true });
    opener.current = null;
  }, [opened]);
  return ({ currentTarget }) => {
    opener.current = currentTarget;
  };
}
