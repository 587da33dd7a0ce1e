// SPDX-License-Identifier: MIT
//
// build.mjs: builds the dashboard from its sources: one page, one script, one style sheet, each
// also compressed with gzip, for cmake/Dashboard.cmake to embed. The same sources give the same
// bytes.
//
//   node web/build.mjs FOLDER     writes index.html, dashboard.js, dashboard.css and *.gz there
//   node web/build.mjs --try      only checks that the required packages are installed and work
import * as esbuild from "esbuild";
import {mkdirSync, readFileSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {constants, gzipSync} from "node:zlib";

const sources = join(dirname(fileURLToPath(import.meta.url)), "dashboard");

// Third-party code is copied into the page together with its licence.
function licences() {
  const text = readFileSync(join(sources, "..", "node_modules", "uplot", "LICENSE"), "utf8");
  return `/*! uPlot\n${text.trim()} */`;
}

function bundle(from) {
  const made = esbuild.buildSync({
    entryPoints: [join(sources, from)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome100", "firefox100", "safari15.4"],
    charset: "utf8",
    legalComments: "eof",
    footer: from.endsWith(".js") ? {js: licences()} : {},
    logLevel: "warning",
  });
  return made.outputFiles[0].contents;
}

// gzip with a header that does not depend on machine or time: the tenth byte would name the
// operating system.
function pack(bytes) {
  const packed = gzipSync(bytes, {level: constants.Z_BEST_COMPRESSION});
  packed[9] = 255;
  return packed;
}

function write(folder, name, bytes) {
  writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, name + ".gz"), pack(bytes));
}

const [folder] = process.argv.slice(2);
if (folder === "--try") {
  esbuild.transformSync("let a");
} else if (folder) {
  mkdirSync(folder, {recursive: true});
  write(folder, "index.html", readFileSync(join(sources, "index.html")));
  write(folder, "dashboard.js", bundle("main.js"));
  write(folder, "dashboard.css", bundle("dashboard.css"));
} else {
  process.stderr.write("usage: node web/build.mjs FOLDER | --try\n");
  process.exit(2);
}
