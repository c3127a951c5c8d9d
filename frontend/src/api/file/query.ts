/** Parameters of a request to a file. */

export type Query = Readonly<Record<string, unknown>>;

/** Name of a request; `key_of` of backend/dumpscope/api/one_file makes the same one. */
export function keyOf(path: string, query: Query): string {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined)
    .sort(([name], [other]) => (name < other ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
  return `${path}?${parts.join("&")}`;
}

export function one(query: Query, name: string): string | null {
  const value = query[name];
  return value === null || value === undefined ? null : String(value);
}

/** Values of a parameter that may have several. */
export function words(query: Query, name: string): string[] {
  return [query[name] ?? []].flat().map(String);
}
