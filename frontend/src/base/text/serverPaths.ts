/** Paths of the server, which is of its own kind whatever the browser runs on. */

/** The path of an entry of a folder; of null, the entry is a whole path. */
export function joinPath(folder: string | null, name: string): string {
  if (folder === null) return name;
  const separator = folder.includes("\\") && !folder.includes("/") ? "\\" : "/";
  return folder.endsWith(separator) ? `${folder}${name}` : `${folder}${separator}${name}`;
}

export function fileName(path: string): string {
  return path.replace(/[/\\]+$/, "").replace(/^.*[/\\]/, "");
}

/** Whether text that was typed where a dump is picked is a path on the server. */
export function isPath(text: string): boolean {
  return /^(\/|~\/|[A-Za-z]:[\\/]|\\\\)/.test(text.trim());
}

/** Whether a file's name is that of a result table of msprobe or ptdbg, which opens as a comparison. */
export function isResultTable(path: string): boolean {
  return /^(debug_)?compare_result.*\.(csv|xlsx|json)$/i.test(fileName(path));
}
