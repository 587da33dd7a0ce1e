// SPDX-License-Identifier: MIT
//
// run.mjs: runs the dashboard's tests in a real browser, with node's test runner. The tests run one
// after the other and share the browser.
//
//   IRON=build/iron node tests/pages/dashboard/run.mjs [NAME...]     test_NAME.mjs; default all
//   node tests/pages/dashboard/run.mjs --try                         only check the requirements
//
//   IRON_CHROMIUM        the browser (/usr/bin/chromium)
//   IRON_TEST_THROTTLE   factor by which the page's CPU is slowed down
import {existsSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after} from "node:test";

const ALL = [
  "first", "making", "feeding", "holding", "map", "live", "access", "losing", "reach", "look",
  "runs"
];
const LIMIT_MS = 1700 * 1000;

function end(code, sentence) {
  process.stderr.write(sentence + "\n");
  process.exit(code);
}

// Playwright logs the browser's output and exit to this file. It reads the variables when it is
// loaded.
const log = mkdtempSync(join(tmpdir(), "iron-page-log-"));
process.on("exit", () => rmSync(log, {recursive: true, force: true}));
process.env.DEBUG = "pw:browser";
process.env.DEBUG_FILE = join(log, "browser.log");

const {chromiumPath, closeBrowser} =
  await import("./page.mjs")
    .catch((error) => end(2, `playwright-core does not run here: ${error.message.split("\n")[0]}`));
if (!chromiumPath() || !existsSync(chromiumPath())) end(2, "chromium is not found");
if (process.argv[2] === "--try") process.exit(0);

const names = process.argv.length > 2 ? process.argv.slice(2) : ALL;
const unknown = names.find((name) => !ALL.includes(name));
if (unknown) end(2, `unknown test ${unknown}; the tests are ${ALL.join(", ")}`);
const {removeFiles} = await import("./command.mjs");

setTimeout(() => end(1, "timed out after 1700 s"), LIMIT_MS).unref();
after(async () => {
  await closeBrowser();
  removeFiles();
});
for (const name of names) await import(`./test_${name}.mjs`);
