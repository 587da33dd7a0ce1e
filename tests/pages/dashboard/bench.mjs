// SPDX-License-Identifier: MIT
//
// bench.mjs: measures what open dashboards cost the server (scripts/bench-page).
//
//   watching   the server's share of one core while an engine is fed at a steady rate, without a
//              page and with one
//   upload     the time of one large upload, without pages and with several, alternating; medians
//              and their ratio
//
// Each part starts its own server with fresh data. The pages run in a headless Chromium on the same
// machine. At the end each engine must hold what it was fed.
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

const TICKS = 100;  // per second, in /proc/PID/stat; Linux always uses this unit
const HELP = `usage: scripts/bench-page [OPTIONS]

Measures what open dashboards cost the server on this machine.

  --seconds S     duration of the feeding with one page (20)
  --feeds N       feeds per second meanwhile (60)
  --size-mib M    size of the upload (4096)
  --rounds N      uploads without pages and as many with them; medians are reported (3)
  --pages N       pages during the upload (4)
  --only PART     run one part only: watching or upload
  --dir FOLDER    directory for temporary files (TMPDIR)
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
      throw new Error(`--${name} is ${values[name]}; it must be a positive integer`);
    return value;
  };
  if (values.only && !["watching", "upload"].includes(values.only))
    throw new Error(`unknown part ${values.only}; the parts are watching and upload`);
  const [seconds, feeds, mib, rounds, pages] =
    ["seconds", "feeds", "size-mib", "rounds", "pages"].map(number);
  return {seconds, feeds, mib, rounds, pages, only: values.only, dir: values.dir};
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// CPU seconds used by the server.
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

// One feed over a keep-alive connection.
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

// Feeds at a steady rate; returns {share of one core, feeds per second}.
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
      `the server, ${perSecond.toFixed(1)} feeds per second, ${who}`,
      `${(100 * share).toFixed(1)} % of one core`, more
    ]);
    await server.make("alone");
    tell("no page", await feedSteadily(server, "alone", plan), "");
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
    tell("one page", measured, `${pictures.toFixed(1)} requests per second by the page`);
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

// Asynchronous, because the browser stops when its events are not read.
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
    row("no page", alone, times.without, "median "),
    row(
      `${pages} pages`, watched, times.with,
      `${(watched / alone).toFixed(3)} times as long; median `)
  ];
}

function printTable(rows) {
  const all = [["workload", "measured", "details"], ...rows];
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
