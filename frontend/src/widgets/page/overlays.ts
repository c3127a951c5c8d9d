/** Overlays that every screen may open; their scripts come when one is opened, or at rest. */
import { lazyPart } from "../late/lazyPart";

const overlay = { overlay: true, late: true };

export const PaletteDialog = lazyPart(async () => (await import("./PaletteDialog")).PaletteDialog, overlay);
export const HelpOverlay = lazyPart(async () => (await import("./HelpOverlay")).HelpOverlay, overlay);
