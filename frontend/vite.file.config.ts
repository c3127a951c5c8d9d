import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { texts } from "./bundling/texts.ts";

/** The server puts plotly.js into the file beside the page, so here is no address of it. */
const packed: Plugin = {
  name: "packed-plotly",
  enforce: "pre",
  load: (id) => (id.includes("/plotly.js-") ? 'export default "";' : undefined),
};

// The page that is put into a file with its replies: one script that loads no other, for a file from a disk may load none.
export default defineConfig({
  base: "/",
  define: { __IN_FILE__: "true" },
  plugins: [packed, react(), texts()],
  build: {
    outDir: "../backend/dumpscope/static/file",
    emptyOutDir: true,
    cssCodeSplit: false,
    modulePreload: false,
    rolldownOptions: {
      input: "src/fileMain.tsx",
      checks: { emptyImportMeta: false }, // Vite loads the styles of a script beside it by that; here is nothing beside it
      output: {
        format: "iife",
        codeSplitting: false,
        entryFileNames: "page.js",
        assetFileNames: "page.[ext]",
      },
    },
  },
});
