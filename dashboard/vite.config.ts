import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig } from "vitest/config";

// Licences of what is in the built page. They go into the wheel beside it.
const LICENCES: Record<string, string> = {
  "Inter (font)": "@fontsource-variable/inter/LICENSE",
  "JetBrains Mono (font)": "@fontsource-variable/jetbrains-mono/LICENSE",
  Preact: "preact/LICENSE",
  "Preact Signals": "@preact/signals/LICENSE",
  "Preact Signals Core": "@preact/signals-core/LICENSE",
};

function licences(): string {
  const texts = Object.entries(LICENCES).map(([name, path]) => {
    const text = readFileSync(new URL(`node_modules/${path}`, import.meta.url), "utf8");
    return `${name}\n${"=".repeat(name.length)}\n\n${text.trim()}\n`;
  });
  return texts.join("\n\n");
}

export default defineConfig({
  // The older form of JSX makes smaller files than the automatic one.
  esbuild: { jsx: "transform", jsxFactory: "h", jsxFragment: "Fragment", jsxInject: `import { h, Fragment } from "preact"` },
  plugins: [
    {
      name: "licences",
      generateBundle() {
        this.emitFile({ type: "asset", fileName: "licences.txt", source: licences() });
      },
    },
    {
      name: "packed", // the server sends scripts and styles as they are here: compressed
      writeBundle({ dir = "" }, bundle) {
        for (const name of Object.keys(bundle).filter((one) => /\.(js|css)$/.test(one))) {
          const file = join(dir, name);
          writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
          rmSync(file);
        }
      },
    },
  ],
  build: {
    outDir: process.env.REMIT_PAGE ?? "../src/remit/server/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the server's policy allows no data: addresses
    modulePreload: { polyfill: false }, // the polyfill is an inline script
    chunkSizeWarningLimit: 250,
  },
  // `npm run dev` passes the API on to a server that runs: `REMIT_SERVER=http://127.0.0.1:8377 npm run dev`.
  server: { proxy: { "/v1": { target: process.env.REMIT_SERVER ?? "http://127.0.0.1:8377", changeOrigin: true } } },
  test: { include: ["test/**/*.test.ts", "test/**/*.test.tsx"] },
});
