// SPDX-License-Identifier: MIT
//
// test_losing.mjs: the server becomes unreachable and returns, while the page is idle and while it
// feeds a file.
import assert from "node:assert/strict";
import {basename} from "node:path";

import * as command from "./command.mjs";
import {LOST, scenario} from "./scenario.mjs";
import {until} from "./waiting.mjs";

scenario("the server is killed and restarted", {}, async ({server, visit}) => {
  visit.announce(LOST);
  await server.make("durable", {nodes: 64});
  await server.feed("durable", command.makeTokens(3000));
  await visit.openEngine("durable");
  const figures = command.figuresOf(await server.engine("durable"));
  await visit.figuresAre(figures);
  const picture = await visit.mapDrawn();

  await server.kill();
  await visit.connectionIs("reconnecting");
  assert.deepEqual(await visit.figures(), figures);
  assert.equal(await visit.pixels(), picture);
  assert.equal(await visit.isSeen("map"), true);
  assert.equal(await visit.at("engine-item").count(), 1);

  await server.start();
  await visit.connectionIs("connected");
  await visit.figuresAre(figures);
  await server.feed("durable", command.makeTokens(77));
  await visit.figuresAre(command.figuresOf(await server.engine("durable")));
});

// The server is killed while a piece is held; the page waits for the server and sends it again.
scenario("the server is killed while a file is fed", {}, async ({server, visit}) => {
  visit.announce(LOST);
  const plan = {nodes: 64, batch: 65536};
  await server.make("resumed", plan);
  await visit.openEngine("resumed");
  const path = command.npyFile("resumed.npy", command.makeTokens(2400000, {seed: 5}));
  const routes = [], isFeed = (url) => url.pathname.endsWith("/feed");
  let seen = 0;
  await visit.page.route(isFeed, (route) => seen++ ? routes.push(route) : route.continue());
  await visit.choose(path);
  await until("the second piece is held", () => routes.length === 1);
  await server.kill();
  await visit.connectionIs("reconnecting");
  await visit.page.unroute(isFeed);
  for (const route of routes) await route.continue().catch(() => {});
  await until("it says that it waits", async () => {
    return /does not answer; no data is lost/.test(await visit.job(basename(path)).textContent());
  });
  await server.start();
  await visit.jobIs(basename(path), "done");
  const expected = command.feedFiles([path], plan);
  assert.deepEqual(command.figuresOf(await server.engine("resumed")), expected);
  await visit.figuresAre(expected);
});
