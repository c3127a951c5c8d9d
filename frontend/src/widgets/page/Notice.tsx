import { useEffect, useState } from "react";
import classes from "./Screen.module.css";

const SHOWN_MS = 2500;

/** Words to show for a moment, "" for none, and the function that shows some. */
export function useNoticeWords(): [words: string, say: (words: string) => void] {
  const [words, setWords] = useState("");
  useEffect(() => {
    if (!words) return;
    const timer = setTimeout(() => setWords(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return [words, setWords];
}

/** A few words at the lower edge of the screen. */
export function Notice({ words }: { words: string }) {
  return (
    <output className={classes.notice} data-shown={words !== "" || undefined} data-testid="notice">
      {words}
    </output>
  );
}
