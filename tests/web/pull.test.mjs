// SPDX-License-Identifier: MIT
//
// pull.test.mjs: when nodes are fetched. Every request stays open until the test answers it.
import assert from "node:assert/strict";
import {test} from "node:test";

const page = Object.assign(new EventTarget(), {hidden: false});
globalThis.document = page;
const {Puller} = await import("../../web/dashboard/pull.js");

// A puller whose requests wait in `open`; next() resolves to the next request.
function pulled() {
  const open = [], waiting = [], seen = [], problems = [];
  const fetchNodes = (name, signal) => new Promise((answer, refuse) => {
    const request = {name, signal, answer, refuse};
    if (waiting.length)
      waiting.shift()(request);
    else
      open.push(request);
  });
  const puller = new Puller(fetchNodes, b => seen.push(b), p => problems.push(p));
  const next = () =>
    open.length ? Promise.resolve(open.shift()) : new Promise(resolve => waiting.push(resolve));
  return {puller, open, next, seen, problems};
}

test("one request at a time, for the newest version", async () => {
  const {puller, open, next, seen} = pulled();
  puller.follow("a", 4096);
  const first = await next();
  for (const version of [1, 2, 3]) puller.tell(version);
  assert.equal(open.length, 0);
  first.answer("nodes 0");
  const second = await next();
  assert.deepEqual(seen, ["nodes 0"]);
  second.answer("nodes 3");
  await new Promise(setImmediate);
  assert.deepEqual(seen, ["nodes 0", "nodes 3"]);
  assert.equal(puller.got, 3);
  assert.equal(puller.timer, 0);  // nothing is scheduled: it has the newest version
  puller.destroy();
});

test("a hidden page sends no requests", async () => {
  const {puller, open, next} = pulled();
  page.hidden = true;
  puller.follow("a", 4096);
  puller.tell(5);
  assert.equal(open.length, 0);
  page.hidden = false;
  page.dispatchEvent(new Event("visibilitychange"));
  assert.equal((await next()).name, "a");
  puller.destroy();
});

test(
  "another engine is selected: the pending request is aborted and its answer not shown",
  async () => {
    const {puller, next, seen} = pulled();
    puller.follow("a", 4096);
    const old = await next();
    puller.follow("b", 4096);
    assert.ok(old.signal.aborted);
    old.answer("nodes of a");
    (await next()).answer("nodes of b");
    await new Promise(setImmediate);
    assert.deepEqual(seen, ["nodes of b"]);
    puller.destroy();
  });

test("large engines get a pause of four times the last answer", async () => {
  const {puller, next} = pulled();
  puller.follow("a", 1 << 20);
  const request = await next();
  const before = performance.now();
  puller.rest(100);
  assert.ok(puller.notBefore >= before + 400);
  puller.nodes = 4096;
  puller.rest(100);
  assert.ok(puller.notBefore <= performance.now() + 16);
  request.answer("nodes");
  puller.destroy();
});

test("a failure is reported, retried and then reported as over", async () => {
  const {puller, next, problems} = pulled();
  puller.follow("a", 4096);
  (await next()).refuse("away");
  const again = await next();
  assert.deepEqual(problems, ["away"]);
  again.answer("nodes");
  await new Promise(setImmediate);
  assert.deepEqual(problems, ["away", null]);
  puller.destroy();
});
