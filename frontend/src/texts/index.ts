import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { ui as en } from "../../../backend/dumpscope/texts/en.json";
import { ui as zh } from "../../../backend/dumpscope/texts/zh.json";

export const LANGUAGES = ["en", "zh"] as const;
const STORED = "dumpscope.language";

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "translation";
    resources: { translation: typeof en };
    interpolationPrefix: "{";
    interpolationSuffix: "}";
  }
}

export function startTexts(): void {
  const wanted = stored() ?? navigator.language;
  const language = wanted.toLowerCase().startsWith("zh") ? "zh" : "en";
  void i18next.use(initReactI18next).init({
    resources: { en: { translation: en }, zh: { translation: zh } },
    lng: language,
    fallbackLng: "en",
    interpolation: { escapeValue: false, prefix: "{", suffix: "}" },
  });
  document.documentElement.lang = language;
}

export function setLanguage(language: string): void {
  void i18next.changeLanguage(language);
  document.documentElement.lang = language;
  try {
    window.localStorage.setItem(STORED, language);
  } catch {
    // Storage is off: the choice lasts as long as the page.
  }
}

function stored(): string | null {
  try {
    return window.localStorage.getItem(STORED);
  } catch {
    return null;
  }
}
