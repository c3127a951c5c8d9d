/** Number of complete records read from a damaged file, taken from the server's sentence; null if it names none. */
export function readRecordsKept(message: string): string | null {
  return /\b(\d+) complete records?\b/.exec(message)?.[1] ?? null;
}
