/** Uploads that this browser began and has not finished, by the fingerprint of their files. */

export interface Begun {
  print: string;
  id: string;
  name: string;
}

const PREFIX = "dumpscope.upload.";

export function recall(print: string): string | null {
  return begun().find((one) => one.print === print)?.id ?? null;
}

export function remember({ print, id, name }: Begun): void {
  stored((store) => store.setItem(PREFIX + print, JSON.stringify({ id, name })));
}

export function forget(print: string): void {
  stored((store) => store.removeItem(PREFIX + print));
}

export function begun(): Begun[] {
  const found: Begun[] = [];
  stored((store) => {
    for (let index = 0; index < store.length; index += 1) {
      const key = store.key(index);
      if (!key?.startsWith(PREFIX)) continue;
      const { id, name } = JSON.parse(store.getItem(key) ?? "{}") as Partial<Begun>;
      if (id) found.push({ print: key.slice(PREFIX.length), id, name: name ?? "" });
    }
  });
  return found;
}

/** Without a storage, or with a foreign entry in it, uploads go on within this page only. */
function stored(use: (store: Storage) => void): void {
  try {
    use(window.localStorage);
  } catch {
    // as said
  }
}
