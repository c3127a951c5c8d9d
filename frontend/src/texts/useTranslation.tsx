/** The texts for components: all that read them are drawn anew when the language changes. */
import { createContext, type ReactNode, useContext, useSyncExternalStore } from "react";
import { currentTranslation, type Translation, watchTranslation } from "./translation";

const TranslationContext = createContext<Translation | null>(null);

export function TranslationProvider({ children }: { children: ReactNode }) {
  const spoken = useSyncExternalStore(watchTranslation, currentTranslation);
  return <TranslationContext value={spoken}>{children}</TranslationContext>;
}

export function useTranslation(): Translation {
  return useContext(TranslationContext) ?? currentTranslation();
}
