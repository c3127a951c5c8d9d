/** A few words shown for a moment at the edge of the screen. */
import { createContext, type ReactNode } from "react";
import { useNoticeWords } from "../../../widgets/page/Notice";
import { useRequired } from "./required";

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
  const [words, say] = useNoticeWords();
  return (
    <SayContext value={say}>
      <WordsContext value={words}>{children}</WordsContext>
    </SayContext>
  );
}
