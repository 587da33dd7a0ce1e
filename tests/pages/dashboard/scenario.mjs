// SPDX-License-Identifier: MIT
//
// scenario.mjs: a test: a server of its own, with nothing in it, and somebody who visits it.
// Starting one costs a few hundredths of a second, and no test meets what another one left.
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {isBrowserLost, Visit} from "./page.mjs";
import {Server} from "./server.mjs";
import {until} from "./waiting.mjs";

const LIMIT_MS = 900 * 1000;  // a hang's; each wait has its own
const LINES_TOLD = 12;

// Errors that the browser itself prints when an answer is no success, and when there is none.
export const status = (...codes) => new RegExp(`Failed to load resource.*(${codes.join("|")})`);
export const LOST = /net::ERR_/;

// body({server, visit, begin}): begin(options) is a further visit. The options are the server's and
// `context`, the browser's.
export function scenario(name, options, body) {
  test(name, {timeout: LIMIT_MS}, async (t) => {
    try {
      await play(options, body);
    } catch (error) {
      await playAgain(t, error, options, body);
    }
  });
}

// A browser whose process is gone (it was killed, or came to grief by itself) says nothing about
// the page: what is known of its end is told, and the test begins anew in another one. Once in all
// tests, and a page that crashes is none of this: that fails.
let wasLost = false;

async function playAgain(t, error, options, body) {
  if (!isBrowserLost() || wasLost) throw error;
  wasLost = true;
  t.diagnostic("the browser was lost, and the test begins anew in another one");
  for (const line of await lastLines(process.env.DEBUG_FILE)) t.diagnostic(line);
  await play(options, body);
}

// Of playwright's log of the browser (run.mjs), once its end is in it.
async function lastLines(path) {
  const log = () => readFileSync(path, "utf8").trim().split("\n");
  await until("its end is told", () => /process did exit/.test(log()), 20).catch(() => {});
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

// What somebody who was not there wants to know of a visit.
async function account({page, errors, requests}) {
  const seen = await page.locator("body").innerText({timeout: 5000}).catch(() => "(no page)");
  return `\n--- errors\n${errors.join("\n")}\n--- last requests\n${requests.slice(-8).join("\n")}` +
    `\n--- the page\n${seen}`;
}
