// Bundles the islands twice: for the service, with hashed names and a manifest; for the report in one file, without.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const pages = join(here, "../static/dist");
const report = join(here, "../../../backprobe/show/html_report/dist");
const shared = { bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none", write: false,
  jsx: "automatic", jsxImportSource: "preact", charset: "ascii", logLevel: "warning", absWorkingDir: here };

async function text(entry, more = {}) {
  const made = await build({ ...shared, ...more, entryPoints: [entry] });
  return Buffer.from(made.outputFiles[0].contents);
}

const script = await text("src/main.tsx");
const play = await text("src/play.tsx");
const matrix = await text("src/matrix.tsx");
const curves = await text("src/curves.ts");
const curvesStyle = await text("node_modules/uplot/dist/uPlot.min.css", { loader: { ".css": "css" } });
const style = await text("../static/site.css", { loader: { ".css": "css" } });

for (const folder of [pages, report]) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}
const manifest = {};
const bundles = [["pages.js", script], ["play.js", play], ["matrix.js", matrix], ["curves.js", curves], ["curves.css", curvesStyle]];
for (const [name, bytes] of bundles) {
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  const hashed = name.replace(".", `-${digest}.`);
  writeFileSync(join(pages, hashed), bytes);
  manifest[name] = hashed;
}
writeFileSync(join(report, "pages.js"), script);
writeFileSync(join(report, "site.css"), style);
// Last: whoever finds the manifest finds all that it names.
writeFileSync(join(pages, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
for (const [name, bytes] of bundles) {
  console.log(`${name} ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} in gzip`);
}
