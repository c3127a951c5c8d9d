/** The part of plotly.js that figures need: two axes, no maps, no third dimension. It is run beside the reading of the first call. */
import script from "plotly.js-cartesian-dist-min/plotly-cartesian.min.js?url";
import { IN_FILE } from "../base/inFile";

export interface Plotly {
  react(
    element: HTMLElement,
    data: unknown[],
    layout: Record<string, unknown>,
    config: Record<string, unknown>,
  ): Promise<unknown>;
  purge(element: HTMLElement): void;
  downloadImage(
    figure: { data: unknown; layout: Record<string, unknown> },
    options: { format: "png" | "svg"; width: number; height: number; scale: number; filename: string },
  ): Promise<unknown>;
  Plots: { resize(element: HTMLElement): void };
}

declare global {
  interface Window {
    Plotly?: Plotly;
  }
}

let loading: Promise<Plotly> | null = null;
let asked = false;

/** Has the script come beside what is drawn before the first plot; it is not run yet, and nothing waits for it. */
export function fetchPlotly(): void {
  if (IN_FILE || asked || loading) return;
  asked = true;
  const link = document.createElement("link");
  Object.assign(link, { rel: "preload", as: "script", fetchPriority: "low", href: script });
  document.head.appendChild(link);
}

export function loadPlotly(): Promise<Plotly> {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  if (IN_FILE) loading ??= runPacked();
  loading ??= new Promise<Plotly>((resolve, reject) => {
    const element = document.createElement("script");
    element.src = script;
    element.async = true;
    element.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error("plotly.js did not start")));
    element.onerror = () => {
      loading = null;
      element.remove();
      reject(new Error("plotly.js could not be loaded"));
    };
    document.head.appendChild(element);
  });
  return loading;
}

/** The copy inside of the file. */
async function runPacked(): Promise<Plotly> {
  await globalThis.run?.("plotly");
  if (!window.Plotly) throw new Error("plotly.js did not start");
  return window.Plotly;
}
