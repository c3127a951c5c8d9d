/** Which sources of the page come together: what a source imports at once, and what that imports. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

const ENDINGS = ["", ".ts", ".tsx", "/index.ts"];

/** The sources that come with these, themselves included. */
export function reach(starts: readonly string[]): ReadonlySet<string> {
  const found = new Set(starts);
  for (const path of found) for (const next of importsOf(path)) found.add(next);
  return found;
}

/** What a source or a style sheet imports at once: neither types alone, nor what is loaded later. */
function importsOf(path: string): string[] {
  const text = readFileSync(path, "utf8");
  const pattern = path.endsWith(".css")
    ? /\sfrom "(\.[^"]+)"/g
    : /^(?:import|export)\s(?!type\s)[^;]*?from\s+"(\.[^"]+)"/gm;
  const named = [...text.matchAll(pattern)].map((match) => match[1] ?? "");
  return named.flatMap((name) => {
    const full = resolve(dirname(path), name);
    const file = ENDINGS.map((ending) => full + ending).find((one) => /\.(?:tsx?|css)$/.test(one) && existsSync(one));
    return file === undefined ? [] : [file];
  });
}
