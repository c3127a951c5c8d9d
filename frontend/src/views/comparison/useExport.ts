import { useEffect, useRef, useState } from "react";
import { fetchExport, type Received } from "../../api/comparison/resultFiles";
import { saveBlob } from "../../widgets/basic/download";
import { describeProblem } from "../../widgets/basic/States";

export interface Exporting {
  format: string;
  /** Null while the server still writes the file. */
  received: Received | null;
}

/** One result file on its way at a time; leaving the screen cancels it. */
export function useExport(say: (words: string) => void) {
  const [now, setNow] = useState<Exporting | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);

  const start = async (format: string, url: string) => {
    stop.current?.abort();
    const own = new AbortController();
    stop.current = own;
    setNow({ format, received: null });
    try {
      const { name, content } = await fetchExport(url, own.signal, (received) => {
        if (!own.signal.aborted) setNow({ format, received });
      });
      saveBlob(name, content);
    } catch (problem) {
      if (!own.signal.aborted) say(describeProblem(problem).detail);
    } finally {
      if (stop.current === own) setNow(null);
    }
  };
  return { now, start, cancel: () => stop.current?.abort() };
}
