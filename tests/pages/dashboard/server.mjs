// SPDX-License-Identifier: MIT
//
// server.mjs: a server under test: `iron serve` of $IRON with its own data folder, and a client for
// it. A stopped server must exit with status 0 and must have printed only the lines for start and
// stop.
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

// Below the ephemeral ports, so that the port is still free when the server is restarted, and above
// the ports that browsers refuse.
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

  // Writes a file next to the data.
  write(name, content) {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }

  // Sets the token for the next start.
  setToken(token) {
    this.token = token;
    const path = this.write("token", token + "\n");
    chmodSync(path, 0o600);
    if (!this.options.includes("--token-file")) this.options.push("--token-file", path);
  }

  // Starts it. If the port is in use, another one is tried, except when the server is restarted.
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

  // Stops it with SIGTERM; the status must be 0, without unexpected output.
  async stop() {
    if (!this.process) return;
    const {lines} = this, end = await this.end("SIGTERM");
    const odd = lines.filter((line) => !EXPECTED.some((known) => known.test(line)));
    if (end.code !== 0 || odd.length)
      throw new Error(
        `the server ended with ${end.code ?? end.signal} and said:\n${lines.join("\n")}`);
  }

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

  // Whether it has connections that were closed by the client only.
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

  // Sends one request on a new connection; resolves to {status, headers, body}.
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

  // The same for a JSON answer; throws unless the status is 2xx.
  async json(method, path, options) {
    const {status, body} = await this.ask(method, path, options);
    if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${body}`);
    return body.length ? JSON.parse(body) : null;
  }

  make(name, plan = {}) {
    const body = Buffer.from(JSON.stringify({name, backend: "cpu", ...plan}));
    return this.json("POST", "/v1/engines", {body, headers: {"Content-Type": "application/json"}});
  }

  // Feeds a Uint16Array.
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

  // Follows an engine over /v1/events: count() is the number of `engine` events received, end()
  // closes the stream.
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
