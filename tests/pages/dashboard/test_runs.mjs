// SPDX-License-Identifier: MIT
//
// test_runs.mjs: training runs: their list, and the page of one: figures, ranks that lag, findings
// as sentences, all of them live; comparing and deleting; layout, contrast and axe-core.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";

import {faintTexts, focused, lowControls, overflowing} from "./audit.mjs";
import {header, send, sendRun, step} from "./ledgers.mjs";
import {scenario, status} from "./scenario.mjs";
import {until, untilEqual} from "./waiting.mjs";

const TOKEN = "open-sesame-0123456789abcdef";

const AXE =
  readFileSync(new URL("../../../web/node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

const sentences = (visit) => visit.page.locator("#findings li").allTextContents();
const row = (visit, name) => visit.page.locator(`[data-run=${name}]`);

async function runIs(visit, name) {
  await untilEqual("the run", () => visit.page.locator("#run-title").textContent(), name);
  await visit.says("run-steps", /^\d/);
}

// Rank 1 of the run repeats step 1000 at 1018 and then stops.
const faulty = (rank, at, plain) => {
  if (rank === 0) return plain;
  return at > 1019 ? null : at === 1018 ? [4003, 4004] : plain;
};

scenario("a run is shown, and followed", {}, async ({server, visit}) => {
  await sendRun(server, "alpha", {first: 1000, steps: 20, edit: faulty});
  await visit.open();
  await runIs(visit, "alpha");
  await visit.says("run-steps", "20");
  await visit.says("run-tokens", /164 k/);
  await visit.says("run-found", "1");
  const repeat = "step 1,018 on rank 1 repeats step 1,000: 2 samples";
  await untilEqual("the findings", () => sentences(visit), [repeat]);
  await visit.says("findings-kinds", "repeated step: 1");
  await until("its row", async () => {
    return /^alpha20 steps, 2 ranks1 finding$/.test(await row(visit, "alpha").textContent());
  });
  assert.equal(await visit.isSeen("run-lag"), false);

  const now = Date.now();
  await send(
    server, "alpha", header(0, 2, now), step(1020, [1, 2], now + 20000),
    step(1021, [4001, 4002], now + 60000));
  await visit.says("run-steps", "22");
  await untilEqual(
    "a new finding", () => sentences(visit),
    ["step 1,021 on rank 0 repeats step 1,000: 2 samples", repeat]);
  await visit.says("run-lag", /^Rank 1 is 2 steps behind;/);
  await until("the line of the rank that lags", async () => {
    return /rank 1, lagging/.test(await visit.page.locator(".run-lines").textContent());
  });
  await untilEqual(
    "its steps", () => visit.text("run-chart-more").then((text) => {
      return text.split(" at ")[0];
    }),
    "steps 1,019 to 1,021");
  const drawn = await visit.page.locator(".run-plot canvas").evaluate((canvas) => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((_, k) => k % 4 === 0 && data[k] > 150 && data[k + 1] < 60).length;
  });
  assert.ok(drawn > 500, `${drawn} red pixels`);
});

scenario("runs and engines, back and forth", {}, async ({server, visit}) => {
  visit.announce(status(404));
  await server.make("machine", {nodes: 16});
  await sendRun(server, "one");
  await sendRun(server, "two", {steps: 300, edit: (rank, at, plain) => at < 2 ? plain : [1, 2]});
  await visit.open();
  await visit.engineIs("machine");
  await row(visit, "one").click();
  await runIs(visit, "one");
  await visit.says("findings-none", /^None/);
  await visit.page.locator("[data-engine=machine]").click();
  await visit.engineIs("machine");
  await visit.page.goBack();
  await runIs(visit, "one");
  await row(visit, "two").click();
  await runIs(visit, "two");
  await untilEqual("some findings", () => sentences(visit).then((all) => all.length), 20);
  await visit.click("findings-more");
  await untilEqual("more findings", () => sentences(visit).then((all) => all.length), 40);

  await server.json("DELETE", "/v1/runs/two");
  await visit.engineIs("machine");
  await untilEqual("one row", () => visit.at("run-item").count(), 1);
  await visit.open("/#run=two");
  await visit.seen("missing");
  assert.match(await visit.text("missing"), /no run named two/);
  await sendRun(server, "two");
  await runIs(visit, "two");
});

async function tabTo(visit, id) {
  await until(`the focus is on ${id}`, async () => {
    await visit.page.keyboard.press("Tab");
    const stop = await visit.page.evaluate(focused);
    if (stop) assert.ok(stop.isVisible, `focus is not seen on ${stop.what}`);
    return stop && stop.id === id;
  });
}

scenario("comparing and deleting with the keyboard", {}, async ({server, visit}) => {
  const {keyboard} = visit.page, end = Date.now();
  await sendRun(server, "new", {steps: 30, end});
  await sendRun(server, "old", {steps: 20, end});
  await visit.open("/#run=new");
  await runIs(visit, "new");
  await tabTo(visit, "compare-with");
  await tabTo(visit, "compare");
  await keyboard.press("Enter");
  await visit.says(
    "compare-result",
    "new compared with old: new goes on with step 20, where old has ended; all before is equal.");
  await visit.page.evaluate(() => document.getElementById("run-title").scrollIntoView());
  await visit.at("delete-run").focus();
  await keyboard.press("Enter");
  await visit.seen("delete-form");
  assert.match(await visit.text("delete-form"), /Delete the run\?/);
  assert.ok(await visit.at("confirm-delete").isDisabled());
  await keyboard.type("new");
  await keyboard.press("Enter");
  await runIs(visit, "old");
  await untilEqual("the runs", () => visit.at("run-item").count(), 1);
  const {runs} = await server.json("GET", "/v1/runs");
  assert.deepEqual(runs.map(({name}) => name), ["old"]);
  assert.equal(await visit.isSeen("compare-form"), false);
});

scenario("signing in and out at a run", {token: TOKEN}, async ({server, visit}) => {
  visit.announce(status(401));
  await sendRun(server, "secret");
  await visit.open("/#run=secret");
  await visit.seen("sign-in");
  assert.equal(await visit.at("run-item").count(), 0);
  await visit.at("token").fill(TOKEN);
  await visit.click("sign-in-button");
  await runIs(visit, "secret");
  await untilEqual("the list", () => visit.at("run-item").count(), 1);
  await visit.click("sign-out");
  await visit.seen("sign-in");
  assert.ok(!(await visit.page.locator("body").textContent()).includes("secret"));
});

const LONG = "a-name-as-long-as-names-may-be-" +
  "x".repeat(33);

async function isSound(visit, state) {
  await untilEqual(`${state}: too wide`, () => visit.page.evaluate(overflowing), []);
  await untilEqual(`${state}: too faint`, () => visit.page.evaluate(faintTexts, 4.5), []);
  await visit.page.evaluate(AXE);
  const violations = await visit.page.evaluate(async () => {
    const {violations: all} = await globalThis.axe.run(document, {resultTypes: ["violations"]});
    return all.map((one) => [one.id, ...one.nodes.map((node) => node.target.join(" "))]);
  });
  assert.deepEqual(violations, [], state);
}

for (const [what, context] of [["light", {}], ["dark", {colorScheme: "dark"}], [
       "phone, dark",
       {viewport: {width: 360, height: 740}, hasTouch: true, isMobile: true, colorScheme: "dark"}
     ]])
  scenario(`the look of a run: ${what}`, {context}, async ({server, visit}) => {
    const end = Date.now();
    await sendRun(server, "other", {steps: 10, end});
    await sendRun(server, LONG, {
      world: 9,
      first: 12345678,
      steps: 30,
      end,
      edit: (rank, at, plain) => {
        if (rank === 8 && at > 12345690) return null;
        return rank === 2 ? [1, 2] : plain;
      }
    });
    await visit.open(`/#run=${LONG}`);
    await runIs(visit, LONG);
    await visit.seen("run-lag");
    await visit.page.locator(".run-plot canvas").waitFor();
    await visit.click("compare");
    await visit.says("compare-result", /compared with other/);
    await isSound(visit, "a run");
    if (context.isMobile) {
      await visit.page.locator("#side-toggle").click();
      await visit.at("run-item").first().waitFor({state: "visible"});
      await isSound(visit, "the list");
      await untilEqual("too low", () => visit.page.evaluate(lowControls, 40), []);
    }
    await visit.click("delete-run");
    await visit.seen("delete-form");
    await isSound(visit, "deleting");
  });
