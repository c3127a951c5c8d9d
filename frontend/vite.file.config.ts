import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { texts } from "./bundling/texts.ts";

// The page that is put into a file with its replies: one script that loads no other, for a file from a disk may load none.
export default defineConfig({
  base: "/",
  define: { __IN_FILE__: "true" },
  plugins: [react(), texts()],
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
