// SPDX-License-Identifier: MIT
//
// shoot.mjs: takes screenshots of the dashboard.
//
//   IRON=build/iron node tests/pages/dashboard/shoot.mjs FOLDER
//
// writes dashboard.png (light, 1280 pixels wide, for the docs), and for inspection dark.png,
// phone.png, phone-dark.png, welcome.png, welcome-phone.png, form.png and sign-in.png.
import {mkdirSync} from "node:fs";
import http from "node:http";
import {join} from "node:path";

import {bytesOf, makeTokens, removeFiles} from "./command.mjs";
import {closeBrowser, Visit} from "./page.mjs";
import {Server} from "./server.mjs";
import {pause, until} from "./waiting.mjs";

const [folder] = process.argv.slice(2);
if (!folder) {
  process.stderr.write("usage: node tests/pages/dashboard/shoot.mjs FOLDER\n");
  process.exit(2);
}
mkdirSync(folder, {recursive: true});

const PHONE = {
  viewport: {width: 360, height: 740},
  isMobile: true,
  hasTouch: true,
  deviceScaleFactor: 2
};
const NAMES = {
  "fineweb-edu": 0,
  "the-stack": 26000,
  "wiki-de": 9000,
  nightly: 0
};

// Tokens with a skewed distribution: small ids are more frequent.
const skewed = (count, seed) => makeTokens(count, {seed}).map((id) => Math.floor(id * id / 50257));

// Sends one body at a varying rate, so that the chart shows a curve. It has few batches: nodes that
// reach the same point stay together, and after many batches the map would have one colour.
const STEPS = 220, STEP_MS = 110, STEP_TOKENS = 15000;

async function feedWhileWatched(server, name) {
  const agent = false, headers = {"Content-Type": "application/octet-stream"};
  const address = `${server.url}/v1/engines/${name}/feed?dtype=u16`;
  const request = http.request(address, {method: "POST", agent, headers});
  const answered = new Promise((tell, fail) => request.on("response", tell).on("error", fail));
  for (let k = 0; k < STEPS; k++) {
    const pace = 1 + 0.55 * Math.sin(k / 17) + 0.25 * Math.sin(k / 5);
    request.write(bytesOf(skewed(Math.round(STEP_TOKENS * pace), k + 1)));
    await pause(STEP_MS);
  }
  request.end();
  (await answered).resume();
}

async function shoot(server, name, path, options, prepare = async () => {}) {
  const visit = await Visit.begin(server, options);
  await visit.open(path);
  await visit.connectionIs(/connected|signed out/);
  await prepare(visit);
  await visit.page.screenshot({path: join(folder, name), fullPage: true});
  await visit.context.close();
}

// Screenshots of one engine that was watched while it was fed.
async function shootEngine(server) {
  const all = [
    ["dashboard.png", {}], ["dark.png", {colorScheme: "dark"}], ["phone.png", PHONE],
    ["phone-dark.png", {...PHONE, colorScheme: "dark"}]
  ];
  const visits = [];
  for (const [, options] of all) visits.push(await Visit.begin(server, options));
  for (const visit of visits) await visit.openEngine("fineweb-edu");
  await feedWhileWatched(server, "fineweb-edu");
  const {batches} = await server.engine("fineweb-edu");
  for (const [k, [name]] of all.entries()) {
    const visit = visits[k];
    await visit.figuresAre(figures(await server.engine("fineweb-edu")));
    await until("a line for each batch", async () => {
      const first = await visit.page.locator("#history-rows tr").first().textContent();
      return first.startsWith(String(batches - 1));
    });
    await visit.at("map").focus();
    for (let moves = 0; moves < 3; moves++) await visit.page.keyboard.press("PageDown");
    await until("a node is shown", async () => await visit.node() !== null);
    await visit.page.evaluate(() => {
      document.activeElement.blur();
      scrollTo(0, 0);
    });
    await visit.page.screenshot({path: join(folder, name), fullPage: true});
    await visit.context.close();
  }
}

function figures({tokens, batches, xor, sum, state, seal}) {
  return {tokens, batches, xor, sum, state, seal};
}

async function withServer(options, body) {
  const server = await new Server(options).start();
  try {
    await body(server);
    await server.stop();
  } finally {
    await server.remove();
  }
}

await withServer({}, async (server) => {
  await shoot(server, "welcome.png", "/", {});
  await shoot(server, "welcome-phone.png", "/", PHONE);
  await shoot(server, "form.png", "/", {}, async (visit) => {
    await visit.click("new-engine");
    await visit.page.locator("#advanced summary").click();
  });
  for (const [name, count] of Object.entries(NAMES)) {
    await server.make(name, name === "fineweb-edu" ? {} : {nodes: 256});
    if (count) await server.feed(name, skewed(count, 77));
  }
  await shoot(server, "guess.png", "/#engine=nightly", {}, async (visit) => {
    await visit.drop({name: "train.bin", bytes: bytesOf(skewed(50000, 5))});
    await visit.seen("dtype");
  });
  await shootEngine(server);
});
await withServer({token: "a-token-for-the-picture"}, async (server) => {
  await shoot(server, "sign-in.png", "/", {}, (visit) => visit.seen("sign-in"));
});
await closeBrowser();
removeFiles();
