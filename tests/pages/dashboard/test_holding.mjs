// SPDX-License-Identifier: MIT
//
// test_holding.mjs: progress, cancelling and resuming of a feed. To make this deterministic, a
// request is held until the test releases it, or the server's process is stopped for a while.
import assert from "node:assert/strict";
import {basename} from "node:path";

import * as command from "./command.mjs";
import {LOST, scenario, status} from "./scenario.mjs";
import {until, untilEqual} from "./waiting.mjs";

const BATCH = 65536, PLAN = {
  nodes: 256,
  batch: BATCH
};
const FIRST = 32 * BATCH;         // the page's first piece: 4 MiB
const TOKENS = 40 * BATCH + 123;  // the last batch is not full

// Holds every feed but the first `passing`. held() is the number of held feeds, release() continues
// all of them.
async function holdFeeds(visit, passing) {
  const waiting = [];
  let seen = 0;
  const isFeed = (url) => url.pathname.endsWith("/feed");
  const handle = (route) => {
    if (seen++ < passing) return route.continue();
    waiting.push(route);
  };
  await visit.page.route(isFeed, handle);
  return {
    held: () => waiting.length,
    // Continuing fails for requests that the page has aborted meanwhile.
    async release() {
      await visit.page.unroute(isFeed, handle);
      for (const route of waiting.splice(0)) await route.continue().catch(() => {});
    }
  };
}

async function begin(server, visit, name) {
  await server.make(name, PLAN);
  await visit.openEngine(name);
  return command.npyFile(`${name}.npy`, command.makeTokens(TOKENS, {seed: 9}));
}

async function agrees(server, visit, name, path) {
  const expected = command.feedFiles([path], PLAN);
  assert.deepEqual(command.figuresOf(await server.engine(name)), expected);
  await visit.figuresAre(expected);
}

const PERCENT = Math.floor(100 * FIRST / TOKENS);

scenario("progress, cancel, continue", {}, async ({server, visit}) => {
  const path = await begin(server, visit, "held"), name = basename(path);
  const gate = await holdFeeds(visit, 1);
  await visit.choose(path);
  await until("the second piece is held", () => gate.held() === 1);
  const progress = () => visit.at("progress").getAttribute("aria-valuenow");
  await untilEqual("the bar", progress, String(PERCENT));
  assert.match(await visit.job(name).textContent(), new RegExp(`${PERCENT} %`));
  assert.equal((await server.engine("held")).tokens, FIRST);

  await visit.click("cancel-feed");
  await visit.jobIs(name, "stopped");
  await visit.says("feed-result", /^Cancelled\. 2,097,152 of 2,621,563 tokens of held\.npy/);
  const engine = await server.engine("held");
  assert.deepEqual([engine.tokens, engine.batches], [FIRST, FIRST / BATCH]);
  await gate.release();

  await visit.click("go-on");
  await visit.jobIs(name, "done");
  await visit.says("feed-result", /^2,621,563 tokens fed/);
  await agrees(server, visit, "held", path);
});

scenario("cancelled before anything was sent", {}, async ({server, visit}) => {
  const path = await begin(server, visit, "none"), name = basename(path);
  const gate = await holdFeeds(visit, 0);
  await visit.choose(path);
  await until("the first piece is held", () => gate.held() === 1);
  await visit.click("cancel-feed");
  await visit.says("feed-result", /^Cancelled\. 0 of/);
  await gate.release();
  assert.equal((await server.engine("none")).tokens, 0);
  await visit.click("go-on");
  await visit.jobIs(name, "done");
  await agrees(server, visit, "none", path);
});

// The server is stopped with a piece in its socket buffers, so at the time of the cancel it is not
// known whether that piece will be fed. It must be fed exactly once.
scenario("cancelled while the server is stopped", {}, async ({server, visit}) => {
  const path = await begin(server, visit, "still"), name = basename(path);
  const gate = await holdFeeds(visit, 1);
  await visit.choose(path);
  await until("the second piece is held", () => gate.held() === 1);
  await until(
    "the first piece is fed", async () => (await server.engine("still")).tokens === FIRST);
  server.signal("SIGSTOP");
  await gate.release();
  await visit.click("cancel-feed");
  await visit.jobIs(name, "stopped");
  server.signal("SIGCONT");
  await until("the server has closed its connections", () => !server.hasLeftovers());
  const {tokens} = await server.engine("still");
  assert.ok([FIRST, TOKENS].includes(tokens) || tokens % BATCH === 0, `${tokens} tokens`);
  await visit.click("go-on");
  await visit.jobIs(name, "done");
  await agrees(server, visit, "still", path);
});

scenario("another client feeds meanwhile", {}, async ({server, visit}) => {
  // A refusal that arrives before the body was sent may look like a broken connection.
  visit.announce(status(409), LOST);
  const path = await begin(server, visit, "shared"), name = basename(path);
  const gate = await holdFeeds(visit, 1);
  await visit.choose(path);
  await until("the second piece is held", () => gate.held() === 1);
  await server.feed("shared", command.makeTokens(1000));
  await gate.release();
  await visit.jobIs(name, "stopped");
  const problem = visit.job(name).getByTestId("problem");
  assert.match(
    await problem.textContent(), /Another client has fed shared: it is at position 2,098,152/);
  assert.equal((await server.engine("shared")).tokens, FIRST + 1000);
  await visit.click("go-on");
  await visit.jobIs(name, "done");
  assert.equal((await server.engine("shared")).tokens, TOKENS + 1000);
});
