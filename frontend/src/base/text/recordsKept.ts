/** How many whole records a damaged file gave, as the server's sentence says; null where it does not. */
export function keptRecords(message: string): string | null {
  return /\b(\d+) complete records?\b/.exec(message)?.[1] ?? null;
}
