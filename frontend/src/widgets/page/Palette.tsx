import { useEffect, useRef, useState } from "react";
import { PaletteDialog } from "./overlays";
import type { PaletteProps } from "./paletteProps";

/** Ctrl-K opens the palette. What is typed before its field can take it is kept for the field. */
export function Palette(props: PaletteProps) {
  const [opened, setOpened] = useState(false);
  const early = useRef<string | null>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const command = event.ctrlKey || event.metaKey;
      if (event.key === "Escape") early.current = null;
      if (early.current !== null && event.key.length === 1 && !command && !event.altKey) {
        early.current += event.key;
        event.preventDefault();
        event.stopImmediatePropagation();
      }
      if (event.key.toLowerCase() !== "k" || !command || event.altKey || event.shiftKey) return;
      event.preventDefault();
      early.current = opened ? null : "";
      setOpened(!opened);
    };
    window.addEventListener("keydown", press, true);
    return () => window.removeEventListener("keydown", press, true);
  }, [opened]);
  return <PaletteDialog {...props} early={early} opened={opened} onClose={() => setOpened(false)} />;
}
