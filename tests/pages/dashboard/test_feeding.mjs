// SPDX-License-Identifier: MIT
//
// test_feeding.mjs: files fed through the page give the same results as `iron feed` and `iron sum`
// with the same configuration.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {basename} from "node:path";

import * as command from "./command.mjs";
import {scenario} from "./scenario.mjs";
import {untilEqual} from "./waiting.mjs";

const PLAN = {
  nodes: 256,
  batch: 4096
};

// The engine, the page and the command agree, and the seal is the file's.
async function agrees(server, visit, name, paths, dtype) {
  const expected = command.feedFiles(paths, {...PLAN, dtype});
  assert.deepEqual(command.figuresOf(await server.engine(name)), expected);
  await visit.figuresAre(expected);
  if (paths.length === 1) assert.equal(expected.seal, command.sealOf(paths[0], dtype));
}

async function opened({server, visit}, name) {
  await server.make(name, PLAN);
  await visit.openEngine(name);
}

const onDisk = (path) => ({name: basename(path), bytes: readFileSync(path)});

scenario("raw u16 from the file chooser, with a guessed type", {}, async ({server, visit}) => {
  await opened({server, visit}, "raw16");
  const path = command.writeFile("tokens.bin", command.makeTokens(30001));
  await visit.click("choose-file");
  await (await visit.fileChooser()).setFiles(path);
  await visit.seen("dtype");
  assert.equal(await visit.at("dtype").inputValue(), "u16");
  await visit.jobIs("tokens.bin", "guess");
  await visit.click("feed");
  await visit.jobIs("tokens.bin", "done");
  await visit.says("feed-result", /^30,001 tokens fed/);
  await agrees(server, visit, "raw16", [path], "u16");
});

scenario("the guessed type can be changed", {}, async ({server, visit}) => {
  await opened({server, visit}, "changed");
  const path = command.writeFile("named.u32", command.makeTokens(20000));
  await visit.choose(path);
  await visit.seen("dtype");
  assert.equal(await visit.at("dtype").inputValue(), "u32");
  await visit.at("dtype").selectOption("u16");
  await visit.click("feed");
  await visit.jobIs("named.u32", "done");
  await agrees(server, visit, "changed", [path], "u16");
});

scenario("raw u32 dropped on the page", {}, async ({server, visit}) => {
  await opened({server, visit}, "raw32");
  const path =
    command.writeFile("ids.bin", command.makeTokens(20000, {limit: 100000, Kind: Uint32Array}));
  await visit.drop(onDisk(path));
  await visit.seen("dtype");
  assert.equal(await visit.at("dtype").inputValue(), "u32");
  await visit.click("feed");
  await visit.jobIs("ids.bin", "done");
  await agrees(server, visit, "raw32", [path], "u32");
});

scenario("files with a header: NumPy, llm.c", {}, async ({server, visit}) => {
  const tokens = command.makeTokens(25000, {seed: 3});
  for (const path of [command.npyFile("a.npy", tokens), command.llmcFile("b.bin", tokens)]) {
    const name = basename(path);
    await opened({server, visit}, name);
    if (name === "a.npy")
      await visit.drop(onDisk(path));
    else
      await visit.choose(path);
    await visit.jobIs(name, "done");
    assert.equal(await visit.at("dtype").count(), 0);
    await agrees(server, visit, name, [path]);
  }
  const [a, b] = [await server.engine("a.npy"), await server.engine("b.bin")];
  assert.equal(a.state, b.state);
});

scenario("several files are fed in the order of their names", {}, async ({server, visit}) => {
  await opened({server, visit}, "many");
  const paths = [2, 10].map(
    (k) => command.npyFile(`part-${k}.npy`, command.makeTokens(3 * PLAN.batch, {seed: k})));
  await visit.drop(...paths.map(onDisk).reverse());
  for (const path of paths) await visit.jobIs(basename(path), "done");
  await agrees(server, visit, "many", paths);
});

scenario("other files are refused with a message", {}, async ({server, visit}) => {
  await opened({server, visit}, "clean");
  const cut = command.npyFile("cut.npy", command.makeTokens(100));
  await visit.drop(
    {name: "empty.bin", bytes: Buffer.alloc(0)},
    {name: "packed.gz", bytes: Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0])},
    {name: "cut.npy", bytes: readFileSync(cut).subarray(0, 200)});
  for (const [name, told] of [
         ["empty.bin", /is empty\./], ["packed.gz", /gzip/], ["cut.npy", /truncated/]]) {
    await visit.jobIs(name, "refused");
    assert.match(await visit.job(name).getByTestId("problem").textContent(), told);
  }
  assert.equal((await server.engine("clean")).feeds, 0);
  await visit.page.getByRole("button", {name: "Remove packed.gz"}).click();
  await untilEqual("files in the list", () => visit.page.locator(".feed-job").count(), 2);
});
