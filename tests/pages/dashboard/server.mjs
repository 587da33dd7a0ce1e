// SPDX-License-Identifier: MIT
//
// server.mjs: a server under test, seen from outside: `iron serve` of $IRON on a data folder of its
// own. It is asked and fed here as another client would; a server that is stopped must end with
// status 0 and must have said nothing but that it serves and stops.
import {spawn} from "node:child_process";
import {chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import http from "node:http";
import {tmpdir} from "node:os";
import {join} from "node:path";

import {until} from "./waiting.mjs";

export const IRON = process.env.IRON || "build/iron";
export const ENVIRONMENT = {
  ...process.env,
  IRON_CUDA_LIBRARY: "none",
  IRON_OPENCL_LIBRARY: "none"
};
const READY = /^iron: serving (http:\/\/127\.0\.0\.1:(\d+)), data in .*, (\d+) engines?$/;
const EXPECTED = [READY, /^iron: stopping/, /^iron: stopped/];
const START_S = 120, STOP_S = 120;

// Below the ports that systems give out by themselves, and above those that browsers refuse: a port
// that a server leaves for a moment is still free when it comes back.
const FIRST_PORT = 21000, PORTS = 10000;

export class Server {
  constructor({token, report} = {}) {
    this.folder = mkdtempSync(join(tmpdir(), "iron-page-"));
    this.options = [];
    this.said = [];
    this.token = token;
    this.port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if (token) this.setToken(token);
    if (report) this.options.push("--report", this.write("report.html", report));
  }

  // A file beside the data.
  write(name, content) {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }

  // The token that the server has when it is started next.
  setToken(token) {
    this.token = token;
    const path = this.write("token", token + "\n");
    chmodSync(path, 0o600);
    if (!this.options.includes("--token-file")) this.options.push("--token-file", path);
  }

  // Starts it; a port that is taken is passed over, unless the server has been there before.
  async start() {
    const data = join(this.folder, "data");
    await until("the server is ready", async () => {
      const listen = `127.0.0.1:${this.port}`;
      const isReady =
        await this.launch(["serve", "--listen", listen, "--data", data, ...this.options]);
      if (!isReady && !this.lines.some((line) => /in use/i.test(line)))
        throw new Error(`the server did not start: ${this.lines.join("\n")}`);
      if (!isReady && !this.url) this.port = FIRST_PORT + Math.floor(Math.random() * PORTS);
      return isReady;
    }, START_S);
    return this;
  }

  // Resolves to whether it has become ready.
  launch(words) {
    this.lines = [];
    this.process = spawn(IRON, words, {env: ENVIRONMENT, stdio: ["ignore", "ignore", "pipe"]});
    const {process: child, lines} = this;
    this.ended = new Promise((tell) => child.on("close", (code, signal) => tell({code, signal})));
    return new Promise((tell, fail) => {
      let rest = "";
      child.stderr.setEncoding("utf8").on("data", (text) => {
        const parts = (rest + text).split("\n");
        rest = parts.pop();
        for (const line of parts) this.hear(line, lines, tell);
      });
      child.on("error", fail);
      child.on("close", () => tell(false));
    });
  }

  hear(line, lines, tell) {
    lines.push(line);
    const found = READY.exec(line);
    if (!found) return;
    this.url = found[1];
    tell(true);
  }

  signal(name) {
    this.process.kill(name);
  }

  // Gracefully: with status 0, and without a complaint.
  async stop() {
    if (!this.process) return;
    const {lines} = this, end = await this.end("SIGTERM");
    const odd = lines.filter((line) => !EXPECTED.some((known) => known.test(line)));
    if (end.code !== 0 || odd.length)
      throw new Error(
        `the server ended with ${end.code ?? end.signal} and said:\n${lines.join("\n")}`);
  }

  // As when the process is lost.
  kill() {
    return this.end("SIGKILL");
  }

  async end(signal) {
    const child = this.process;
    this.process = null;
    child.kill("SIGCONT");
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), 1000 * STOP_S);
    const end = await this.ended;
    clearTimeout(timer);
    return end;
  }

  // Does it still hold connections that their clients have left?
  hasLeftovers() {
    const CLOSE_WAIT = "08", place = `:${this.port.toString(16).toUpperCase().padStart(4, "0")}`;
    const rows =
      readFileSync("/proc/net/tcp", "latin1").split("\n").map((row) => row.trim().split(/\s+/));
    return rows.some(([, local, , state]) => local?.endsWith(place) && state === CLOSE_WAIT);
  }

  async remove() {
    if (this.process) await this.kill();
    rmSync(this.folder, {recursive: true, force: true});
  }

  // One request on a connection of its own: {status, headers, body}.
  ask(method, path, {body, headers = {}, token = this.token} = {}) {
    const all = {...headers};
    if (token) all.Authorization = `Bearer ${token}`;
    if (body) all["Content-Length"] = body.length;
    return new Promise((tell, fail) => {
      const request =
        http.request(this.url + path, {method, headers: all, agent: false}, (answer) => {
          const parts = [];
          answer.on("data", (part) => parts.push(part)).on("error", fail);
          answer.on(
            "end",
            () => tell(
              {status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts)}));
        });
      request.on("error", fail);
      request.end(body);
    });
  }

  // The same with JSON in the answer, which must be one of success.
  async json(method, path, options) {
    const {status, body} = await this.ask(method, path, options);
    if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${body}`);
    return body.length ? JSON.parse(body) : null;
  }

  make(name, plan = {}) {
    const body = Buffer.from(JSON.stringify({name, backend: "cpu", ...plan}));
    return this.json("POST", "/v1/engines", {body, headers: {"Content-Type": "application/json"}});
  }

  // Feeds tokens, a Uint16Array.
  feed(name, tokens) {
    return this.json(
      "POST", `/v1/engines/${name}/feed?dtype=u16`, {body: Buffer.from(tokens.buffer)});
  }

  engine(name) {
    return this.json("GET", `/v1/engines/${name}`);
  }

  delete(name) {
    return this.json("DELETE", `/v1/engines/${name}`);
  }

  // Follows an engine over /v1/events, as another client: count() tells how many `engine` events
  // have come, end() closes it.
  follow(name) {
    let seen = 0;
    const headers = this.token ? {Authorization: `Bearer ${this.token}`} : {};
    const address = `${this.url}/v1/events?engine=${name}`;
    const request = http.get(address, {headers, agent: false}, (answer) => {
      answer.setEncoding("utf8").on("data", (text) => {
        seen += text.split("event: engine\n").length - 1;
      });
      answer.on("error", () => {});
    });
    request.on("error", () => {});
    return {count: () => seen, end: () => request.destroy()};
  }
}
