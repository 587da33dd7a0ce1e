// SPDX-License-Identifier: MIT
//
// test_live.mjs: the page follows changes by other clients, shows the rate, and sends no requests
// while its tab is hidden.
import assert from "node:assert/strict";

import {figuresOf, makeTokens} from "./command.mjs";
import {scenario} from "./scenario.mjs";
import {until, untilEqual} from "./waiting.mjs";

const names = (visit) => visit.page.locator(".row-name").allTextContents();

scenario("another client creates, feeds and deletes engines", {}, async ({server, visit}) => {
  await visit.open();
  await visit.connectionIs("connected");
  await visit.seen("try-sample");
  await server.make("one", {nodes: 16});
  await visit.engineIs("one");
  await server.make("two", {nodes: 16});
  await untilEqual("the list", () => names(visit), ["one", "two"]);
  await server.feed("two", makeTokens(4321));
  await until("its tokens are in the list", async () => {
    return /^4\.32/.test(await visit.page.locator("[data-engine=two] .row-tokens").textContent());
  });
  await visit.page.locator("[data-engine=two]").click();
  await visit.engineIs("two");
  await visit.figuresAre(figuresOf(await server.engine("two")));
  await server.feed("two", makeTokens(100));
  await visit.figuresAre(figuresOf(await server.engine("two")));
  await server.delete("two");
  await visit.engineIs("one");
  await untilEqual("the list", () => names(visit), ["one"]);
  await server.delete("one");
  await visit.seen("try-sample");
  assert.equal(await visit.at("engine-item").count(), 0);
});

scenario("sixty feeds, each of them drawn", {}, async ({server, visit}) => {
  await server.make("sixty", {nodes: 64});
  await visit.openEngine("sixty");
  const pictures = new Set([await visit.mapDrawn()]);
  for (let k = 1; k <= 60; k++) {
    const {seal} = await server.feed("sixty", makeTokens(10 + k, {seed: k}));
    await visit.says("seal", seal);
    assert.equal(await visit.text("feeds"), String(k));
    pictures.add(await visit.pixels());
  }
  await visit.figuresAre(figuresOf(await server.engine("sixty")));
  assert.ok(pictures.size > 1, "the map never changed");
  await visit.at("map").focus();
  await visit.page.keyboard.press("Control+End");
  await visit.page.keyboard.press("Control+End");
  await visit.nodeIs("sixty", 63);
});

// Feeds without a pause until the page has shown a rate, then stops.
scenario("a rate while tokens arrive, idle otherwise", {}, async ({server, visit}) => {
  await server.make("busy", {nodes: 16});
  await visit.openEngine("busy");
  await visit.says("rate-now", "idle");
  let isDone = false;
  const feeding = (async () => {
    while (!isDone) await server.feed("busy", makeTokens(1000));
  })();
  try {
    await visit.says("rate-now", /[1-9].* tokens\/s$/);
    await visit.says("rate-figure", /[1-9]/);
    await until("a rate in the list", async () => {
      return /tokens\/s$/.test(
        await visit.page.locator("[data-engine=busy] .row-rate").textContent());
    });
  } finally {
    isDone = true;
    await feeding;
  }
  await visit.says("rate-now", "idle");
  await visit.says("rate-figure", "0");
  await untilEqual(
    "no rate in the list", () => visit.page.locator("[data-engine=busy] .row-rate").textContent(),
    "");
  await visit.figuresAre(figuresOf(await server.engine("busy")));
});

scenario("a hidden tab sends no requests", {}, async ({server, visit}) => {
  await server.make("unseen", {nodes: 64});
  await server.feed("unseen", makeTokens(500));
  await visit.openEngine("unseen");
  await visit.mapDrawn();
  await until("the history is shown", async () => {
    return await visit.page.locator("#history-rows tr").count() === 1;
  });
  const other = server.follow("unseen");
  await until("the other client is connected", () => other.count() >= 1);

  await visit.setHidden(true);
  await until("no request is pending", () => visit.under.size === 0);
  const asked = visit.requests.length;
  for (let k = 0; k < 4; k++) {
    const seen = other.count();
    await server.feed("unseen", makeTokens(100, {seed: k}));
    await until("the other client has received it", () => other.count() > seen);
  }
  assert.deepEqual(visit.requests.slice(asked), []);

  await visit.setHidden(false);
  await visit.connectionIs("connected");
  await visit.figuresAre(figuresOf(await server.engine("unseen")));
  other.end();
});

const CLIPBOARD = {
  permissions: ["clipboard-read", "clipboard-write"]
};

scenario(
  "pages of the history, copying the seal", {context: CLIPBOARD}, async ({server, visit}) => {
    await server.make("long", {nodes: 16, batch: 100});
    await server.feed("long", makeTokens(4450));
    await visit.openEngine("long");
    const column = () => visit.page.locator("#history-rows td:first-child").allTextContents();
    const down = (from, count) => Array.from({length: count}, (_, k) => String(from - k));
    await untilEqual("the newest", column, down(44, 20));
    await visit.page.locator("#older").click();
    await untilEqual("older ones", column, down(24, 20));
    await visit.page.locator("#older").click();
    await untilEqual("the oldest", column, down(19, 20));
    await server.feed("long", makeTokens(100));
    await visit.says("batches", "46");
    await untilEqual("an older page does not change", column, down(19, 20));
    await visit.page.locator("#newest").click();
    await untilEqual("the newest", column, down(45, 20));

    await visit.click("copy-seal");
    const announced = visit.page.locator("#announcement");
    await untilEqual("the announcement", () => announced.textContent(), "The seal was copied.");
    const {seal} = await server.engine("long");
    assert.equal(await visit.page.evaluate(() => navigator.clipboard.readText()), seal);
  });
