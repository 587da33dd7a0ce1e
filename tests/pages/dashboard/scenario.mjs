// SPDX-License-Identifier: MIT
//
// scenario.mjs: one test, with its own empty server and one visit. Starting a server takes a few
// hundredths of a second and keeps the tests independent.
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {isBrowserLost, Visit} from "./page.mjs";
import {Server} from "./server.mjs";
import {until} from "./waiting.mjs";

const LIMIT_MS = 900 * 1000;  // reached only by a hung test; each wait has its own limit
const LINES_TOLD = 12;

// Errors that the browser itself prints for these HTTP statuses, and for an unreachable server.
export const status = (...codes) => new RegExp(`Failed to load resource.*(${codes.join("|")})`);
export const LOST = /net::ERR_/;

// body({server, visit, begin}): begin(options) starts another visit. `options` are those of the
// server, and `context` for the browser.
export function scenario(name, options, body) {
  test(name, {timeout: LIMIT_MS}, async (t) => {
    try {
      await play(options, body);
    } catch (error) {
      await playAgain(t, error, options, body);
    }
  });
}

// If the browser's process was killed or crashed, the test is repeated once with a new browser, and
// the end of the browser's log is printed. This happens at most once per run. A crash of the page
// alone fails the test.
let wasLost = false;

async function playAgain(t, error, options, body) {
  if (!isBrowserLost() || wasLost) throw error;
  wasLost = true;
  t.diagnostic("the browser crashed; repeating the test with a new one");
  for (const line of await lastLines(process.env.DEBUG_FILE)) t.diagnostic(line);
  await play(options, body);
}

// The last lines of playwright's log (run.mjs), once they include the browser's exit.
async function lastLines(path) {
  const log = () => readFileSync(path, "utf8").trim().split("\n");
  await until("its exit is logged", () => /process did exit/.test(log()), 20).catch(() => {});
  return log().filter((line) => !/dbus/.test(line)).slice(-LINES_TOLD);
}

async function play(options, body) {
  const server = new Server(options), visits = [];
  const begin = async (context) => {
    visits.push(await Visit.begin(server, {...options.context, ...context}));
    return visits[visits.length - 1];
  };
  try {
    await server.start();
    await body({server, visit: await begin(), begin});
    for (const visit of visits) await visit.end();
    await server.stop();
  } catch (error) {
    for (const visit of visits) error.message += await account(visit);
    throw error;
  } finally {
    for (const visit of visits) await visit.context.close().catch(() => {});
    await server.remove();
  }
}

// Describes a visit for the error message of a failed test.
async function account({page, errors, requests}) {
  const seen = await page.locator("body").innerText({timeout: 5000}).catch(() => "(no page)");
  return `\n--- errors\n${errors.join("\n")}\n--- last requests\n${requests.slice(-8).join("\n")}` +
    `\n--- the page\n${seen}`;
}
