/** Paths of the server, which is of its own kind whatever the browser runs on. */

/** The path of an entry of a folder; of null, the entry is a whole path. */
export function joinPath(folder: string | null, name: string): string {
  if (folder === null) return name;
  const separator = folder.includes("\\") && !folder.includes("/") ? "\\" : "/";
  return folder.endsWith(separator) ? `${folder}${name}` : `${folder}${separator}${name}`;
}

export function lastPart(path: string): string {
  return path.replace(/[/\\]+$/, "").replace(/^.*[/\\]/, "");
}
