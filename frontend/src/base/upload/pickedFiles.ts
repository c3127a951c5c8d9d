/** Dropped or picked files, grouped into dumps: one per top folder, one per archive, one for loose files. */

export interface PickedFile {
  file: File;
  /** Path below the dropped item, with "/" between parts. */
  path: string;
}

export interface Bundle {
  name: string;
  files: PickedFile[];
  bytes: number;
}

const ARCHIVE = /\.(zip|tar|tar\.gz|tgz)$/i;

export function groupIntoDumps(files: readonly PickedFile[]): Bundle[] {
  const groups = new Map<string, PickedFile[]>();
  for (const picked of files) {
    const slash = picked.path.indexOf("/");
    const key =
      slash > 0
        ? `folder:${picked.path.slice(0, slash)}`
        : ARCHIVE.test(picked.path)
          ? `archive:${picked.path}`
          : "loose:";
    const group = groups.get(key);
    if (group) group.push(picked);
    else groups.set(key, [picked]);
  }
  return [...groups.entries()].map(([key, group]) => ({
    name: key.slice(key.indexOf(":") + 1) || (group[0]?.path ?? ""),
    files: group,
    bytes: group.reduce((sum, picked) => sum + picked.file.size, 0),
  }));
}

export function readInput(list: FileList | null): PickedFile[] {
  return Array.from(list ?? []).map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

/** Walks dropped folders. Entries must be taken from the event before the first await: the browser empties it. */
export async function readDrop(transfer: DataTransfer): Promise<PickedFile[]> {
  const entries = Array.from(transfer.items)
    .map((item) => item.webkitGetAsEntry?.() ?? null)
    .filter((entry): entry is FileSystemEntry => entry !== null);
  if (entries.length === 0) return readInput(transfer.files);
  const found: PickedFile[] = [];
  const waiting: [FileSystemEntry, string][] = entries.map((entry) => [entry, entry.name]);
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [entry, path] = next;
    if (entry.isFile) found.push({ file: await fileOf(entry as FileSystemFileEntry), path });
    else if (entry.isDirectory) {
      for (const child of await childrenOf(entry as FileSystemDirectoryEntry))
        waiting.push([child, `${path}/${child.name}`]);
    }
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

async function childrenOf(entry: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = entry.createReader();
  const found: FileSystemEntry[] = [];
  // Readers hand out at most a hundred entries at a time and say they are finished with an empty answer.
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (batch.length === 0) return found;
    found.push(...batch);
  }
}
