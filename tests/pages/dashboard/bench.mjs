// SPDX-License-Identifier: MIT
//
// bench.mjs: what pages that watch cost the server (scripts/bench-page).
//
//   watching   the server's share of one core while an engine is fed so many times a second, with
//              nobody watching and with one page
//   upload     the time of one large upload, with nobody watching and with several pages,
//              alternating; medians and their ratio
//
// Each part has a server of its own with fresh data, pages are real ones in a headless Chromium on
// the same machine, and in the end each engine must hold what it was fed.
import {execFile} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import http from "node:http";
import {cpus, tmpdir} from "node:os";
import {join} from "node:path";
import {parseArgs, promisify} from "node:util";

import {makeTokens} from "./command.mjs";
import {closeBrowser, Visit} from "./page.mjs";
import {ENVIRONMENT, IRON, Server} from "./server.mjs";
import {pause, until} from "./waiting.mjs";

const TICKS = 100;  // of /proc/PID/stat a second; Linux tells user space no other number
const HELP = `usage: scripts/bench-page [OPTIONS]

What pages that watch an engine cost the server, on this machine.

  --seconds S     of feeding while one page watches (20)
  --feeds N       a second, meanwhile (60)
  --size-mib M    of the upload (4096)
  --rounds N      of the upload, without and with pages each; the median counts (3)
  --pages N       that watch the upload (4)
  --only PART     watching or upload
  --dir FOLDER    where files and data go (a new folder in TMPDIR)
`;

function options() {
  const text = (value) => ({type: "string", default: value});
  const {values} = parseArgs({
    options: {
      seconds: text("20"),
      feeds: text("60"),
      "size-mib": text("4096"),
      rounds: text("3"),
      pages: text("4"),
      only: {type: "string"},
      dir: {type: "string"},
      help: {type: "boolean"}
    }
  });
  if (values.help) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const number = (name) => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 1)
      throw new Error(`--${name} is ${values[name]}; it must be a whole number from 1`);
    return value;
  };
  if (values.only && !["watching", "upload"].includes(values.only))
    throw new Error(`there is no part ${values.only}; the parts are watching and upload`);
  const [seconds, feeds, mib, rounds, pages] =
    ["seconds", "feeds", "size-mib", "rounds", "pages"].map(number);
  return {seconds, feeds, mib, rounds, pages, only: values.only, dir: values.dir};
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Seconds of processor that the server has used.
function cpuSeconds(server) {
  const stat = readFileSync(`/proc/${server.process.pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

async function withServer(body) {
  const server = await new Server().start();
  try {
    await body(server);
    await server.stop();
  } finally {
    await server.remove();
  }
}

// One feed on a connection that stays open.
function feedOver(agent, server, name, body) {
  return new Promise((tell, fail) => {
    const headers = {"Content-Length": body.length};
    const address = `${server.url}/v1/engines/${name}/feed?dtype=u16`;
    const request = http.request(address, {method: "POST", agent, headers}, (answer) => {
      answer.resume().on("end", () => tell(answer.statusCode)).on("error", fail);
    });
    request.on("error", fail);
    request.end(body);
  });
}

// Feeds at a steady pace: {share of one core, feeds a second}.
async function feedSteadily(server, name, {seconds, feeds}) {
  const agent = new http.Agent({keepAlive: true, maxSockets: 1});
  const body = Buffer.from(makeTokens(512).buffer), total = seconds * feeds;
  const begun = performance.now(), before = cpuSeconds(server);
  for (let k = 0; k < total; k++) {
    const wait = begun + 1000 * k / feeds - performance.now();
    if (wait > 0) await pause(wait);
    if (await feedOver(agent, server, name, body) !== 200) throw new Error("a feed was refused");
  }
  const took = (performance.now() - begun) / 1000, used = cpuSeconds(server) - before;
  agent.destroy();
  const held = await server.engine(name);
  if (held.feeds !== total) throw new Error(`${name} was fed ${held.feeds} times, not ${total}`);
  return {share: used / took, perSecond: total / took};
}

async function watchingPart(plan) {
  const rows = [];
  await withServer(async (server) => {
    const tell = (who, {share, perSecond}, more) => rows.push([
      `the server, fed ${perSecond.toFixed(1)} times a second, ${who}`,
      `${(100 * share).toFixed(1)} % of one core`, more
    ]);
    await server.make("alone");
    tell("nobody watches", await feedSteadily(server, "alone", plan), "");
    await server.make("watched");
    const visit = await Visit.begin(server);
    await visit.openEngine("watched");
    const asked = visit.requests.length;
    const measured = await feedSteadily(server, "watched", plan);
    const pictures = (visit.requests.length - asked) / plan.seconds;
    await until("the page shows the last feed", async () => {
      return Number(await visit.text("feeds").then((text) => text.replaceAll(",", ""))) ===
        plan.seconds * plan.feeds;
    });
    tell("one page watches", measured, `${pictures.toFixed(1)} requests of the page a second`);
    await visit.end();
  });
  return rows;
}

async function uploadOnce(server, visits, path, name, isWatched) {
  await server.make(name);
  for (const visit of visits)
    await (isWatched ? visit.openEngine(name) : visit.page.goto("about:blank"));
  const begun = performance.now();
  await run("curl", [
    "-sS", "--fail-with-body", "-X", "POST", "-T", path, "-H",
    "Content-Type: application/octet-stream", `${server.url}/v1/engines/${name}/feed`
  ]);
  return (performance.now() - begun) / 1000;
}

// Meanwhile the pages are listened to: a browser that nobody hears comes to a stand.
const run = (command, words) => promisify(execFile)(command, words, {env: ENVIRONMENT});

async function uploadPart({mib, rounds, pages, dir}) {
  const folder = mkdtempSync(join(dir || tmpdir(), "iron-bench-page-"));
  const path = join(folder, "tokens.u32"), count = mib * 1048576 / 4;
  const times = {without: [], with: []};
  try {
    await run(
      IRON, ["gen", "--seed", "3", "--count", String(count), "--limit", "50257", "-o", path]);
    await withServer(async (server) => {
      const visits = [];
      for (let k = 0; k < pages; k++) visits.push(await Visit.begin(server));
      for (let k = 0; k < rounds; k++)
        for (const how of ["without", "with"]) {
          const name = `${how}-${k}`;
          times[how].push(await uploadOnce(server, visits, path, name, how === "with"));
          const {tokens} = await server.engine(name);
          if (tokens !== count) throw new Error(`${name} holds ${tokens} tokens, not ${count}`);
        }
      for (const visit of visits) await visit.end();
    });
  } finally {
    rmSync(folder, {recursive: true, force: true});
  }
  return uploadRows(mib, pages, times);
}

function uploadRows(mib, pages, times) {
  const [alone, watched] = [median(times.without), median(times.with)];
  const row = (who, seconds, all, more) =>
    [`one upload of ${mib} MiB, ${who}`,
     `${seconds.toFixed(2)} s, ${(mib * 1.048576 / 1000 / seconds).toFixed(2)} GB/s`,
     `${more}of ${all.map((took) => took.toFixed(2)).join(", ")} s`];
  return [
    row("nobody watches", alone, times.without, "median "),
    row(
      `${pages} pages watch`, watched, times.with,
      `${(watched / alone).toFixed(3)} times as long; median `)
  ];
}

function printTable(rows) {
  const all = [["what", "measured", "beside it"], ...rows];
  const widths = [0, 1, 2].map((k) => Math.max(...all.map((row) => row[k].length)));
  for (const row of all)
    console.log(row.map((cell, k) => cell.padEnd(widths[k])).join("  ").trimEnd());
}

try {
  const plan = options(), rows = [];
  if (plan.only !== "upload") rows.push(...await watchingPart(plan));
  if (plan.only !== "watching") rows.push(...await uploadPart(plan));
  console.log(`${cpus().length} processors, ${cpus()[0].model}`);
  printTable(rows);
} catch (error) {
  process.stderr.write(`bench-page: ${error.message}\n`);
  process.exitCode = 2;
}
await closeBrowser();
