import "@mantine/core/styles.css";
import "./widgets/page/app.css";
import "./widgets/page/print.css";
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { watchConnection } from "./api/reconnect";
import { retryQuery } from "./api/records";
import { getLocation, startLocation } from "./base/address/location";
import { startTexts } from "./texts";
import { TranslationProvider } from "./texts/useTranslation";
import { App, preloadScreen } from "./views/App";
import { watchKeys } from "./widgets/basic/useKeys";
import { watchPrinting } from "./widgets/page/printing";
import { theme } from "./widgets/page/theme";

startLocation();
watchKeys();
watchPrinting();
preloadScreen(getLocation().path); // beside the texts: neither needs the other to come

// "always": a browser that believes itself offline (a cable pulled, a laptop without any network) still reaches a server on
// this machine or behind a tunnel; by default every request would wait, unsent, until it believes otherwise.
const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      gcTime: 120_000,
      retry: retryQuery,
      refetchOnWindowFocus: false,
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

watchConnection(client);

const root = document.getElementById("root");
if (root) {
  // No `await` here: scripts that come later import this one, and would wait for its end.
  startTexts().then(
    () => draw(root),
    () => {
      root.textContent = "The texts of this page could not be loaded. Reload it."; // no texts: no other language either
    },
  );
}

function draw(place: HTMLElement): void {
  createRoot(place).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="auto">
        <QueryClientProvider client={client}>
          <TranslationProvider>
            <App />
          </TranslationProvider>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
