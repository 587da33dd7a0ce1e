// SPDX-License-Identifier: MIT
//
// test_access.mjs: signing in and out of a server with a token, and opening the report with a
// ticket.
import assert from "node:assert/strict";

import {LOST, scenario, status} from "./scenario.mjs";
import {until} from "./waiting.mjs";

const TOKEN = "open-sesame-0123456789abcdef", OTHER = "close-sesame-0123456789abcdef";
const REPORT = "<!doctype html><title>races</title><h1>A report of races</h1>";

async function signIn(visit, token) {
  await visit.seen("sign-in");
  await visit.at("token").fill(token);
  await visit.click("sign-in-button");
}

scenario("sign in, reload, sign out", {token: TOKEN}, async ({server, visit}) => {
  visit.announce(status(401));
  await server.make("secret", {nodes: 16});
  await visit.open();
  await signIn(visit, "wrong");
  await visit.says("problem", /Wrong token/);
  await signIn(visit, "with blanks in it");
  await visit.says("problem", /without spaces/);
  assert.equal(await visit.at("engine-item").count(), 0);
  await signIn(visit, TOKEN);
  await visit.engineIs("secret");
  await visit.gone("sign-in");
  await visit.page.reload();
  await visit.engineIs("secret");
  assert.equal(await visit.isSeen("sign-in"), false);

  await visit.click("sign-out");
  await visit.seen("sign-in");
  await until("nothing of it is left", async () => {
    return !(await visit.page.locator("body").textContent()).includes("secret");
  });
  await visit.page.reload();
  await visit.seen("sign-in");
});

scenario("the token changes during a visit", {token: TOKEN}, async ({server, visit}) => {
  visit.announce(status(401), LOST);
  await server.make("secret", {nodes: 16});
  await visit.open();
  await signIn(visit, TOKEN);
  await visit.engineIs("secret");
  await server.stop();
  server.setToken(OTHER);
  await server.start();
  await visit.seen("sign-in");
  await visit.says("problem", /Wrong token/);
  await signIn(visit, OTHER);
  await visit.engineIs("secret");
  await visit.connectionIs("connected");
});

async function openReport(visit) {
  const [popup] =
    await Promise.all([visit.context.waitForEvent("page"), visit.click("report-link")]);
  await popup.getByText("A report of races").waitFor();
  return popup;
}

scenario("the report without a token", {report: REPORT}, async ({server, visit}) => {
  await visit.open();
  const popup = await openReport(visit);
  assert.equal(popup.url(), server.url + "/report");
});

scenario("the report with a ticket", {report: REPORT, token: TOKEN}, async ({server, visit}) => {
  visit.announce(status(401));
  await visit.open();
  await signIn(visit, TOKEN);
  const tickets = new Set();
  for (let k = 0; k < 2; k++) {
    const popup = await openReport(visit), address = new URL(popup.url());
    assert.match(address.pathname + address.search, /^\/report\?ticket=[0-9a-f]+$/);
    const again = await server.ask("GET", address.pathname + address.search, {token: null});
    assert.equal(again.status, 401, "a ticket works once");
    tickets.add(address.search);
    await popup.close();
  }
  assert.equal(tickets.size, 2);
});
