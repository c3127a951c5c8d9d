import { useEffect, useState } from "react";
import { PaletteDialog } from "./overlays";
import type { PaletteProps } from "./paletteProps";

/** Ctrl-K opens the palette. */
export function Palette(props: PaletteProps) {
  const [opened, setOpened] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      setOpened((before) => !before);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
  return <PaletteDialog {...props} opened={opened} onClose={() => setOpened(false)} />;
}
