/** The reader's language: what the browser says until somebody chooses, and that choice from then on. */
import { type Language, loadTexts, takeLack } from "./catalogues";
import { currentTranslation, speak } from "./translation";

const STORED = "dumpscope.language";

/** Ends when the answer can be drawn in the reader's language. */
export async function startTexts(): Promise<void> {
  const wanted = (stored() ?? navigator.language).toLowerCase().startsWith("zh") ? "zh" : "en";
  try {
    await loadTexts(wanted, "first");
    speak(wanted);
  } catch {
    await loadTexts("en", "first"); // in English rather than not at all
  }
}

/** Ends when all else can be drawn too. */
export async function restOfTexts(): Promise<void> {
  const { language } = currentTranslation();
  // Sentences of the server that were shown in English may be known now; where none was, nothing is drawn anew.
  if ((await loadTexts(language, "rest")) && takeLack()) speak(language);
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
  await Promise.all([loadTexts(language, "first"), loadTexts(language, "rest")]);
  speak(language);
}

function stored(): string | null {
  try {
    return window.localStorage.getItem(STORED);
  } catch {
    return null;
  }
}
