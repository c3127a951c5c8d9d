import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { chunkOf } from "./bundling/chunks.ts";
import { eagerPlotly } from "./bundling/plotly.ts";
import { texts } from "./bundling/texts.ts";

const server = process.env.DUMPSCOPE_URL ?? "http://127.0.0.1:8000";

// A relative base keeps the bundle usable below any path prefix; index.html resolves it for deep links.
export default defineConfig({
  base: "./",
  define: { __IN_FILE__: "false" },
  plugins: [react(), texts(), eagerPlotly()],
  build: {
    outDir: "../backend/dumpscope/static",
    emptyOutDir: true,
    rolldownOptions: {
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [{ debugName: "screens", name: chunkOf }],
        },
      },
    },
  },
  server: { proxy: { "/api": server } },
  test: { include: ["tests/**/*.test.ts"] },
});
