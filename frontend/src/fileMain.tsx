/** The page as it stands in a file with its replies: it shows one comparison and needs no server. */
import "@mantine/core/styles.css";
import "./widgets/page/app.css";
import "./widgets/page/print.css";
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { openContents } from "./api/file/contents";
import { startFileLocation } from "./base/address/location";
import { startTexts } from "./texts";
import { TranslationProvider } from "./texts/useTranslation";
import { ComparisonView } from "./views/comparison/ComparisonView";
import { watchKeys } from "./widgets/basic/useKeys";
import { watchPrinting } from "./widgets/page/printing";
import { theme } from "./widgets/page/theme";

// Replies of a file never change, and are not away: nothing is asked twice.
const client = new QueryClient({
  defaultOptions: {
    queries: { staleTime: Number.POSITIVE_INFINITY, retry: false, refetchOnWindowFocus: false, networkMode: "always" },
  },
});

async function open(): Promise<void> {
  const [{ comparison }] = await Promise.all([openContents(), startTexts()]);
  startFileLocation(`comparisons/${comparison}`);
  watchKeys();
  watchPrinting();
  const place = document.getElementById("root");
  if (!place) return;
  createRoot(place).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="auto">
        <QueryClientProvider client={client}>
          <TranslationProvider>
            <ComparisonView id={comparison} />
          </TranslationProvider>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}

void open();
