/** A few words shown for a moment at the edge of the screen. */
import { createContext, type ReactNode, useEffect, useState } from "react";
import { useRequired } from "./required";

const SHOWN_MS = 2500;

const SayContext = createContext<((words: string) => void) | null>(null);
const WordsContext = createContext<string | null>(null);

/** Shows words. */
export function useSay(): (words: string) => void {
  return useRequired(SayContext);
}

/** The words shown now, "" for none. */
export function useNotice(): string {
  return useRequired(WordsContext);
}

export function NoticeProvider({ children }: { children: ReactNode }) {
  const [words, setWords] = useState("");
  useEffect(() => {
    if (!words) return;
    const timer = setTimeout(() => setWords(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return (
    <SayContext value={setWords}>
      <WordsContext value={words}>{children}</WordsContext>
    </SayContext>
  );
}
