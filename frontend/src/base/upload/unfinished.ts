/** Uploads that this browser began but did not finish, by the fingerprint of their files. */

export interface UnfinishedUpload {
  print: string;
  id: string;
  name: string;
}

const PREFIX = "dumpscope.upload.";

export function recallUpload(print: string): string | null {
  return listUnfinished().find((one) => one.print === print)?.id ?? null;
}

export function rememberUpload({ print, id, name }: UnfinishedUpload): void {
  withStorage((store) => store.setItem(PREFIX + print, JSON.stringify({ id, name })));
}

export function forgetUpload(print: string): void {
  withStorage((store) => store.removeItem(PREFIX + print));
}

export function listUnfinished(): UnfinishedUpload[] {
  const found: UnfinishedUpload[] = [];
  withStorage((store) => {
    for (let index = 0; index < store.length; index += 1) {
      const key = store.key(index);
      if (!key?.startsWith(PREFIX)) continue;
      const { id, name } = JSON.parse(store.getItem(key) ?? "{}") as Partial<UnfinishedUpload>;
      if (id) found.push({ print: key.slice(PREFIX.length), id, name: name ?? "" });
    }
  });
  return found;
}

/** Without storage, or with an unreadable entry in it, uploads can be continued only within this page. */
function withStorage(use: (store: Storage) => void): void {
  try {
    use(window.localStorage);
  } catch {
    // see above
  }
}
