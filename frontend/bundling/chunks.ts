/**
 * Which script of the page a module goes into, where more than one needs it.
 *
 * `page` is what every screen needs before it shows its answer, `ComparisonView` the banner of a comparison, `controls` what comes behind that:
 * what opens over the page, lists, and what is small. `belowStrip` and `parts` fill the screen of a comparison; the page of a dump needs `parts`, too.
 * Left alone, the bundler makes some ninety scripts of the same modules, most of a kilobyte: they compress worse, and each is a request.
 */
import { resolve } from "node:path";
import { reach } from "./imports.ts";

export const SOURCE = resolve(import.meta.dirname, "../src");
/** The screen whose first scripts are counted: tests/ui/test_scripts.py. */
export const ANSWER = [`${SOURCE}/main.tsx`, `${SOURCE}/views/comparison/ComparisonView.tsx`];

/** Of plotly.js only its address. */
const FIRST =
  /\/node_modules\/(?:react|react-dom|scheduler|plotly\.js-[a-z-]+|@tanstack\/(?:query-core|react-query)|clsx)\/|\.css/;
/** Mantine's frame, and its few elements that float over nothing. */
const FIRST_MANTINE =
  /\/@mantine\/core\/esm\/(?:core|components\/(?:ActionIcon|Button|Loader|Transition|UnstyledButton))\//;
const FIRST_HOOKS =
  /\/@mantine\/hooks\/esm\/use-(?:color-scheme|did-update|isomorphic-effect|media-query|mutation-observer|reduced-motion)\//;

const main = reach(ANSWER.slice(0, 1));
const answer = reach(ANSWER);
const others = reach([`${SOURCE}/views/home/HomeView.tsx`, `${SOURCE}/views/dump/DumpView.tsx`]);
/** What fills the screen behind the banner, and the banner's own notes. */
const behind = reach(
  ["belowStrip.ts", "Controls.tsx", "panels/PlotPanel.tsx", "banner/CoverageNotes.tsx", "plan/PlanNotes.tsx"].map(
    (path) => `${SOURCE}/views/comparison/${path}`,
  ),
);
/** Small parts of every screen, or of more than one: a script of its own would be a request for half a kilobyte. */
const small = reach(["page/ThemeMenu.tsx", "watch/ComparisonNews.tsx"].map((path) => `${SOURCE}/widgets/${path}`));

/** The script of a module; null where the bundler may choose. */
export function chunkOf(id: string): string | null {
  if (id.includes("/node_modules/"))
    return [FIRST, FIRST_MANTINE, FIRST_HOOKS].some((pattern) => pattern.test(id)) ? "page" : "controls";
  if (!id.startsWith(SOURCE)) return /virtual:texts|\.html$/.test(id) ? null : "page";
  if (id === ANSWER[0]) return null; // the entry keeps a script of its own, which index.html names
  if (main.has(id) || (answer.has(id) && others.has(id))) return "page";
  if (answer.has(id)) return "ComparisonView";
  if (small.has(id)) return "controls";
  if (behind.has(id)) return others.has(id) ? "parts" : "belowStrip";
  return null;
}
