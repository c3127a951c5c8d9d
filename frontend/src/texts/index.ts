/** The reader's language: what the browser says until somebody chooses, and that choice from then on. */
import { loadChinese } from "./serverTexts";
import { type Language, speak } from "./translation";

const STORED = "dumpscope.language";

/** Ends when the page can be drawn in the reader's language; at once where that is English. */
export async function startTexts(): Promise<void> {
  const wanted = stored() ?? navigator.language;
  if (!wanted.toLowerCase().startsWith("zh")) return;
  await change("zh").catch(() => undefined); // in English rather than not at all
}

/** Changes nothing while the server that has the texts does not answer. */
export async function setLanguage(language: Language): Promise<void> {
  try {
    await change(language);
  } catch {
    return;
  }
  try {
    window.localStorage.setItem(STORED, language);
  } catch {
    // Storage is off: the choice lasts as long as the page.
  }
}

async function change(language: Language): Promise<void> {
  speak(language, language === "zh" ? (await loadChinese()).ui : null);
}

function stored(): string | null {
  try {
    return window.localStorage.getItem(STORED);
  } catch {
    return null;
  }
}
