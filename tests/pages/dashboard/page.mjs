// SPDX-License-Identifier: MIT
//
// page.mjs: the page in a headless Chromium. Records what a page must not do: console errors,
// exceptions, violations of its content security policy, requests to other servers. A test
// announces the errors that it provokes (the browser itself prints some for an unreachable server);
// any other error fails the test.
import {existsSync} from "node:fs";

import {chromium} from "../../../web/node_modules/playwright-core/index.mjs";

import {LIMIT_S, until, untilEqual} from "./waiting.mjs";

const KNOWN = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
const SLOWER = Number(process.env.IRON_TEST_THROTTLE || 0);  // factor of CPU throttling

let browser = null;

export function chromiumPath() {
  return process.env.IRON_CHROMIUM || KNOWN.find((path) => existsSync(path));
}

// The shared browser; starts a new one if it has crashed.
async function theBrowser() {
  if (browser && browser.isConnected()) return browser;
  browser = await chromium.launch({
    executablePath: chromiumPath(),
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    timeout: 1000 * LIMIT_S
  });
  return browser;
}

// Whether the browser has ended without being closed.
export function isBrowserLost() {
  return browser !== null && !browser.isConnected();
}

export async function closeBrowser() {
  if (browser) await browser.close();
  browser = null;
}

// One user with a browser context that is not shared with other visits.
export class Visit {
  static async begin(server, options = {}) {
    const visit = new Visit();
    const context = await (await theBrowser()).newContext({
      viewport: {width: 1280, height: 900},
      reducedMotion: "reduce",
      colorScheme: "light",
      ...options
    });
    Object.assign(
      visit, {server, context, errors: [], announced: [], requests: [], under: new Set()});
    context.setDefaultTimeout(1000 * LIMIT_S);
    await visit.listen();
    visit.page = await context.newPage();
    visit.choosers = [];
    visit.page.on("filechooser", (chooser) => visit.choosers.push(chooser));
    if (SLOWER) await visit.slowDown(SLOWER);
    return visit;
  }

  async listen() {
    const {context, errors} = this;
    await context.exposeBinding("tellViolation", (_, text) => errors.push(`CSP: ${text}`));
    await context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) => {
        globalThis.tellViolation(`${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    context.on("console", (message) => {
      if (message.type() === "error") errors.push(`console: ${message.text()}`);
    });
    context.on("page", (page) => page.on("crash", () => errors.push("the page crashed")));
    context.on("weberror", (error) => errors.push(`exception: ${error.error().stack}`));
    context.on("request", (request) => this.begun(request));
    context.on("requestfinished", (request) => this.under.delete(request));
    context.on("requestfailed", (request) => this.under.delete(request));
  }

  begun(request) {
    const address = request.url();
    this.under.add(request);
    this.requests.push(`${request.method()} ${address}`);
    if (/^(http|ws)s?:/.test(address) && !address.startsWith(this.server.url + "/"))
      this.errors.push(`a request to another origin: ${address}`);
  }

  async slowDown(times) {
    const session = await this.context.newCDPSession(this.page);
    await session.send("Emulation.setCPUThrottlingRate", {rate: times});
  }

  // Errors that match a pattern are expected from now on.
  announce(...patterns) {
    this.announced.push(...patterns);
  }

  async end() {
    await this.context.close();
    const odd = this.errors.filter((text) => !this.announced.some((known) => known.test(text)));
    if (odd.length) throw new Error(`unexpected errors of the page:\n${odd.join("\n")}`);
  }

  open(path = "/") {
    return this.page.goto(this.server.url + path);
  }

  // Opens the page at an engine and waits until it is shown completely.
  async openEngine(name) {
    await this.open(`/#engine=${name}`);
    await this.engineIs(name);
  }

  at(id) {
    return this.page.getByTestId(id);
  }

  // Retries if the page moved under the pointer, as it does when rows arrive.
  async pick(id) {
    await until(`${id} is picked`, async () => {
      await this.at(id).check().catch(() => {});
      return this.at(id).isChecked();
    });
  }

  async click(id) {
    await this.at(id).click();
  }

  text(id) {
    return this.at(id).textContent();
  }

  isSeen(id) {
    return this.at(id).isVisible();
  }

  seen(id) {
    return this.at(id).waitFor({state: "visible"});
  }

  gone(id) {
    return this.at(id).waitFor({state: "hidden"});
  }

  // Waits until the element is visible with this text.
  async says(id, expected) {
    const isIt = (text) => typeof expected === "string" ? text === expected : expected.test(text);
    const all = this.at(id).filter({visible: true});
    let last;
    const claim = async () => {
      last = (await all.allTextContents()).map((text) => text.trim());
      return last.some(isIt);
    };
    await until(`${id} says ${expected}`, claim).catch((error) => {
      throw new Error(`${error.message}; it says ${JSON.stringify(last)}`);
    });
  }

  async connectionIs(state) {
    await this.says("connection", state);
  }

  // Waits until this engine is shown with its configuration.
  async engineIs(name) {
    await until(
      `${name} is shown`,
      async () => await this.page.locator("#engine-title").textContent() === name &&
        await this.page.locator("#plan").textContent() !== "");
  }

  // The figures shown on the page, in the form of the command's report.
  async figures() {
    const [tokens, batches, xor, sum, state, seal] = await Promise.all(
      ["tokens", "batches", "xor", "sum", "state", "seal"].map((id) => this.text(id)));
    const number = (text) => Number(text.replaceAll(",", ""));
    return {tokens: number(tokens), batches: number(batches), xor, sum, state, seal};
  }

  async figuresAre(expected) {
    await untilEqual("the figures", () => this.figures(), expected);
  }

  // The pixels of the map as one string; "" while nothing is drawn.
  pixels() {
    return this.page.locator(".map-canvas").evaluate((canvas) => {
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data[3] === 255 ? canvas.toDataURL() : "";
    });
  }

  // Waits until the map is drawn and differs from `before`; returns its pixels.
  mapDrawn(before = "") {
    return until("the map is drawn", async () => {
      const now = await this.pixels();
      return now !== "" && now !== before && now;
    });
  }

  // The node whose values are shown, or null.
  async node() {
    const texts = await this.page.locator(".map-fields:visible dd").allTextContents();
    if (texts.length !== 4) return null;
    const [node, point, potential, activation] =
      texts.map((text) => Number(text.replaceAll(",", "").replace("\u2212", "-")));
    return {node, point, potential, activation};
  }

  // Waits until this node is shown, with the values that the server has for it now.
  async nodeIs(engine, j) {
    const state = await this.server.json("GET", `/v1/engines/${engine}/state`);
    await untilEqual(`the values of node ${j}`, () => this.node(), {
      node: j,
      point: state.xor_accumulators[j],
      potential: state.potentials[j],
      activation: Number(state.activations[j].toPrecision(6))
    });
  }

  // The file chooser that the page has opened. The listener is installed at the start: one that is
  // installed just before the key press may be too late.
  fileChooser() {
    return until("a file chooser", () => this.choosers.shift());
  }

  // Chooses files, given as paths or as {name, mimeType, buffer}.
  choose(...files) {
    return this.at("file-input").setInputFiles(files);
  }

  // The list item of a file that is being fed.
  job(name) {
    return this.page.locator(".feed-job").filter({has: this.page.getByText(name, {exact: true})});
  }

  async jobIs(name, state) {
    const state_ = () => this.job(name).last().getAttribute("data-state");
    await untilEqual(`the state of ${name}`, state_, state);
  }

  // Drops files, given as {name, bytes}, on the drop zone.
  async drop(...files) {
    const zone = this.at("drop");
    const packed = files.map(({name, bytes}) => ({name, text: bytes.toString("base64")}));
    const transfer = await this.page.evaluateHandle((all) => {
      const made = new DataTransfer();
      for (const {name, text} of all)
        made.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
      return made;
    }, packed);
    for (const kind of ["dragenter", "dragover", "drop"])
      await zone.dispatchEvent(kind, {dataTransfer: transfer});
  }

  // Makes the page believe that its tab is hidden or visible.
  setHidden(isHidden) {
    return this.page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
      Object.defineProperty(
        document, "visibilityState",
        {configurable: true, get: () => hidden ? "hidden" : "visible"});
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
  }
}
