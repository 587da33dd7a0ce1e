// SPDX-License-Identifier: MIT
//
// test_making.mjs: creating engines with the form, error messages in the form, deleting engines.
import assert from "node:assert/strict";

import {scenario, status} from "./scenario.mjs";
import {until} from "./waiting.mjs";

const PLAN = {
  nodes: 100,
  vocab: 1000,
  batch: 5000,
  positions: "batch",
  backend: "cpu",
  mode: "scalar",
  lattice: [3, 9, 27]
};

async function openForm(visit) {
  await visit.click("new-engine");
  await visit.seen("engine-form");
  await visit.page.locator("#advanced summary").click();
  await visit.seen("lattice");
}

scenario("every field is sent", {}, async ({server, visit}) => {
  await visit.open();
  await openForm(visit);
  for (const field of ["nodes", "vocab", "batch", "mode"])
    await visit.at(field).fill(String(PLAN[field]));
  for (const field of ["positions", "backend"]) await visit.at(field).selectOption(PLAN[field]);
  await visit.at("lattice").fill(PLAN.lattice.join(", "));
  await visit.at("engine-name").fill("odd.one_7");
  await visit.click("create");
  await visit.engineIs("odd.one_7");
  const engine = await server.engine("odd.one_7");
  for (const [field, value] of Object.entries(PLAN)) assert.deepEqual(engine[field], value, field);
  const plan = await visit.page.locator("#plan").textContent();
  for (const part of ["100 nodes", "1,000", "5,000", "scalar on cpu", "from 3 to 27"])
    assert.ok(plan.includes(part), `${part} in ${plan}`);

  await visit.click("new-engine");
  await visit.at("engine-name").fill("not-made");
  await visit.click("cancel-create");
  await visit.gone("engine-form");
  assert.equal((await server.ask("GET", "/v1/engines/not-made")).status, 404);
});

// [field, invalid value, expected message]
const WRONG = [
  ["engine-name", "", /name/i], ["engine-name", "no blanks", /name/i],
  ["engine-name", "-first", /name/i], ["vocab", "1", /vocab/i], ["vocab", "many", /vocab/i],
  ["nodes", "0", /nodes/i], ["nodes", "1048577", /nodes/i], ["batch", "0", /batch/i],
  ["batch", "-5", /batch/i], ["mode", "quickest", /mode|quickest/i],
  ["lattice", "9, 3", /lattice/i], ["lattice", "7", /lattice/i], ["lattice", "7, 70000", /lattice/i]
];

scenario("each invalid value gets a message", {}, async ({server, visit}) => {
  visit.announce(status(400));
  await visit.open();
  await openForm(visit);
  for (const [field, value, told] of WRONG) {
    const before = await visit.at(field).inputValue();
    await visit.at("engine-name").fill("fine");
    await visit.at(field).fill(value);
    await visit.click("create");
    await visit.says("problem", told);
    const sentence = await visit.text("problem");
    assert.match(sentence.replace(/Dismiss$/, ""), /^[A-Z'].*[.!?]$/s, `${field} ${value}`);
    assert.equal(await visit.at(field).getAttribute("aria-invalid"), "true", `${field} ${value}`);
    assert.equal(await visit.isSeen("engine-form"), true);
    await visit.at(field).fill(before);
    await visit.at("problem").getByRole("button").click();
    await visit.gone("problem");
  }
  assert.deepEqual((await server.json("GET", "/v1/engines")).engines, []);
  await visit.at("engine-name").fill("fine");
  await visit.click("create");
  await visit.engineIs("fine");
});

scenario("the name of an existing engine", {}, async ({server, visit}) => {
  visit.announce(status(409));
  await server.make("taken", {nodes: 16});
  await visit.open();
  await visit.engineIs("taken");
  await visit.click("new-engine");
  await visit.at("engine-name").fill("taken");
  await visit.click("create");
  await visit.says("problem", /taken/);
  assert.equal(await visit.at("engine-name").getAttribute("aria-invalid"), "true");
  await visit.at("engine-name").fill("free");
  await visit.click("create");
  await visit.engineIs("free");
  assert.deepEqual(
    (await server.json("GET", "/v1/engines")).engines.map(({name}) => name), ["free", "taken"]);
});

scenario("deleting an engine requires typing its name", {}, async ({server, visit}) => {
  for (const name of ["kept", "lost"]) await server.make(name, {nodes: 16});
  await visit.openEngine("lost");
  await visit.click("delete-engine");
  await visit.seen("delete-form");
  assert.equal(await visit.at("confirm-delete").isDisabled(), true);
  await visit.at("delete-name").fill("kept");
  assert.equal(await visit.at("confirm-delete").isDisabled(), true);
  await visit.at("delete-name").fill("lost");
  await visit.click("confirm-delete");
  await visit.engineIs("kept");
  await until("one is left in the list", async () => await visit.at("engine-item").count() === 1);
  assert.equal((await server.ask("GET", "/v1/engines/lost")).status, 404);
  assert.equal((await server.engine("kept")).tokens, 0);
});

scenario("a missing engine can be created", {}, async ({server, visit}) => {
  visit.announce(status(404));
  await visit.open("/#engine=ghost");
  await visit.seen("missing");
  await visit.page.locator("#make-missing").click();
  await visit.seen("engine-form");
  assert.equal(await visit.at("engine-name").inputValue(), "ghost");
  await visit.click("create");
  await visit.engineIs("ghost");
  assert.equal((await server.engine("ghost")).feeds, 0);
});
