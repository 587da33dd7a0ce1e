// SPDX-License-Identifier: MIT
//
// test_look.mjs: layout and contrast in each state of the page. On a phone, nothing is wider than
// the window and all touch targets are large enough; all text has enough contrast in both themes.
import assert from "node:assert/strict";

import {faintTexts, lowControls, overflowing} from "./audit.mjs";
import * as command from "./command.mjs";
import {scenario, status} from "./scenario.mjs";
import {untilEqual} from "./waiting.mjs";

const LONG = "a-name-as-long-as-names-may-be-" +
  "x".repeat(33);
const LEAST_PIXELS = 40, LEAST_RATIO = 4.5;

// Puts the page into each of its states and calls judge(name of the state).
async function states(server, visit, judge) {
  visit.announce(status(400, 404));
  await visit.open();
  await visit.connectionIs("connected");
  await visit.seen("try-sample");
  await judge("welcome");
  await visit.click("new-engine");
  await visit.page.locator("#advanced summary").click();
  await visit.at("engine-name").fill("no blanks");
  await visit.click("create");
  await visit.seen("problem");
  await judge("the form with a problem");
  await visit.click("cancel-create");

  await server.make(
    LONG, {batch: 500, lattice: Array.from({length: 64}, (_, k) => 1000 * (k + 1))});
  await visit.engineIs(LONG);
  await judge("an empty engine");
  await visit.drop(
    {name: `${LONG}.bin`, bytes: command.bytesOf(command.makeTokens(6000))},
    {name: "empty.npy", bytes: Buffer.alloc(0)});
  await visit.jobIs("empty.npy", "refused");
  await visit.jobIs(`${LONG}.bin`, "guess");
  await judge("files that wait");
  await visit.click("feed");
  await visit.jobIs(`${LONG}.bin`, "done");
  await visit.mapDrawn();
  await visit.at("map").focus();
  await visit.page.keyboard.press("End");
  await untilEqual("batches", () => visit.text("batches"), "12");
  await visit.page.locator("#history-rows tr").first().waitFor();
  await judge("a fed engine");
  await visit.pick("map-by-potential");
  await judge("potentials");
  await visit.click("delete-engine");
  await visit.seen("delete-form");
  await judge("deleting");
  await visit.click("cancel-delete");
  await visit.open("/#engine=nowhere");
  await visit.seen("missing");
  await judge("an engine that is not there");
}

const PHONE = {
  viewport: {width: 360, height: 740},
  hasTouch: true,
  isMobile: true
};

// Waits until the layout has no problems.
async function fitsPhone(visit, state) {
  await untilEqual(`${state}: too wide`, () => visit.page.evaluate(overflowing), []);
  await untilEqual(`${state}: too low`, () => visit.page.evaluate(lowControls, LEAST_PIXELS), []);
}

async function isReadable(visit, state) {
  await untilEqual(`${state}: too faint`, () => visit.page.evaluate(faintTexts, LEAST_RATIO), []);
}

scenario("on a phone", {context: PHONE}, async ({server, visit}) => {
  await states(server, visit, (state) => fitsPhone(visit, state));
  await visit.page.locator("#side-toggle").click();
  await visit.page.locator("[data-testid=engine-item]").waitFor({state: "visible"});
  await fitsPhone(visit, "the list");
});

for (const colorScheme of ["light", "dark"])
  scenario(
    `contrast of all texts: ${colorScheme}`, {context: {colorScheme}}, async ({server, visit}) => {
      await states(server, visit, (state) => isReadable(visit, state));
    });

const TOKEN = "long-enough-to-get-no-warning";
const NIGHT = {
  ...PHONE,
  colorScheme: "dark"
};

scenario("signing in on a phone, dark theme", {token: TOKEN, context: NIGHT}, async ({visit}) => {
  visit.announce(status(401));
  await visit.open();
  await visit.seen("sign-in");
  await visit.at("token").fill("wrong");
  await visit.click("sign-in-button");
  await visit.seen("problem");
  await fitsPhone(visit, "signing in");
  await isReadable(visit, "signing in");
});

scenario("the switch between light and dark", {}, async ({server, visit}) => {
  await server.make("tinted", {nodes: 16});
  await visit.openEngine("tinted");
  const paper = () => visit.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper(), picture = await visit.mapDrawn();
  await visit.click("theme");
  await untilEqual("the switch", () => visit.at("theme").getAttribute("aria-pressed"), "true");
  const dark = await paper();
  assert.notEqual(dark, light);
  await visit.mapDrawn(picture);
  await isReadable(visit, "dark by choice");
  await visit.page.reload();
  await visit.engineIs("tinted");
  assert.equal(await paper(), dark);
});
