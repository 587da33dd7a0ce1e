// SPDX-License-Identifier: MIT
//
// rate.js: tokens per second over the last two minutes, as a line by uPlot, and the current rate as
// text. The text changes with each report; the line is drawn at most once per second, which keeps
// four pages on the server's own machine affordable. Without new reports it moves only while the
// page is visible and shows a value other than zero.

import uPlot from "uplot";

import {roundUp} from "./colours.js";
import {h, oncePerFrame, setText} from "./dom.js";
import {RateWindow, WINDOW_SECONDS} from "./rate_window.js";
import {rate as rateText, short} from "./text.js";
import {onTheme} from "./theme.js";

const HEIGHT = 160;
const TICK_MS = 1000;
const TICKS = [-120, -90, -60, -30, 0];

function now() {
  return Date.now() / 1000;
}

function ago(seconds) {
  const back = Math.round(-seconds);
  return back < 1 ? "now" : back % 60 ? `${back} s ago` : `${back / 60} min ago`;
}

class RateChart {
  constructor(root) {
    this.window = new RateWindow();
    this.timer = 0;
    this.paintedAt = -TICK_MS;
    this.draw = oncePerFrame(() => this.paint());
    this.now = h("strong", {class: "rate-now", "data-testid": "rate-now"}, "idle");
    this.more = h("span", {class: "rate-more"});
    this.holder = h("div", {class: "rate-plot", role: "img"});
    this.element =
      h("div", {class: "rate", "data-testid": "rate"},
        h("p", {class: "rate-head"}, this.now, this.more), this.holder);
    root.append(this.element);
    this.readColours();
    this.plot = new uPlot(this.options(), [[], []], this.holder);
    this.listen();
    this.paint();
  }

  listen() {
    this.sizer = new ResizeObserver(() => this.resize());
    this.sizer.observe(this.holder);
    this.endTheme = onTheme(() => this.retint());
    this.wake = () => this.draw();
    document.addEventListener("visibilitychange", this.wake);
  }

  // The time of the rate, in seconds since 1970, and the rate.
  push(seconds, rate) {
    this.window.push(seconds, Math.max(0, rate || 0));
    this.tellNow(rate);
    this.drawInTime();
  }

  // Draws one second after the line was last drawn, or at once.
  drawInTime() {
    const wait = this.paintedAt + TICK_MS - performance.now();
    if (wait <= 0)
      this.draw();
    else if (!this.timer)
      this.timer = setTimeout(this.draw, wait);
  }

  tellNow(rate) {
    setText(this.now, rate > 0 ? rateText(rate) : "idle");
  }

  clear() {
    this.window.clear();
    this.draw();
  }

  destroy() {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.wake);
    this.sizer.disconnect();
    this.endTheme();
    this.plot.destroy();
    this.element.remove();
  }

  readColours() {
    const style = getComputedStyle(this.element);
    const named = name => style.getPropertyValue(name).trim();
    this.colours = {line: named("--accent"), grid: named("--line"), text: named("--muted")};
    this.font = `12px ${style.fontFamily}`;
  }

  retint() {
    this.readColours();
    this.plot.redraw(false, true);
  }

  resize() {
    const width = Math.floor(this.holder.clientWidth);
    if (width > 0 && width !== this.plot.width) this.plot.setSize({width, height: HEIGHT});
  }

  paint() {
    if (document.hidden || !this.element.isConnected) return;
    const at = now(), [times, rates] = this.window.points(at), rate = this.window.at(at);
    this.plot.setData([times.map(t => t - at), rates], true);
    this.tellNow(rate);
    this.tellMore();
    clearTimeout(this.timer);
    this.paintedAt = performance.now();
    this.timer = this.window.isFlat(at) ? 0 : setTimeout(this.draw, TICK_MS);
  }

  // Next to the current rate: the rate under the pointer, otherwise the highest.
  tellMore() {
    const k = this.plot.cursor.idx, [times, rates] = this.plot.data, {peak} = this.window;
    const isPointing = this.plot.cursor.left >= 0 && k !== null && k !== undefined;
    const summary = peak ? `highest in two minutes ${rateText(peak)}` : "nothing in two minutes";
    this.holder.setAttribute("aria-label", `Tokens per second: ${summary}`);
    if (isPointing && rates[k] !== null && rates[k] !== undefined)
      setText(this.more, `${ago(times[k])}: ${rateText(rates[k])}`);
    else
      setText(this.more, peak ? summary : "");
  }

  options() {
    const axis = {
      stroke: () => this.colours.text,
      grid: {stroke: () => this.colours.grid, width: 1},
      ticks: {show: false},
      font: this.font
    };
    return {
      width: Math.max(1, Math.floor(this.holder.clientWidth)),
      height: HEIGHT,
      padding: [8, 20, 0, 0],
      legend: {show: false},
      cursor: {y: false, drag: {x: false, y: false}, points: {size: 7}},
      scales: {
        x: {time: false, range: [-WINDOW_SECONDS, 0]},
        y: {range: (_, __, highest) => [0, roundUp(Math.max(1, (highest || 0) * 1.05))]}
      },
      axes: [
        {
          ...axis,
          splits: () => TICKS,
          values: (_, splits) => splits.map(axisTime),
          size: 28,
          grid: {show: false}
        },
        {
          ...axis,
          size: 52,
          space: 36,
          gap: 6,
          values: (_, splits) => splits.map(v => this.axisRate(v))
        }
      ],
      series: [
        {}, {
          stroke: () => this.colours.line,
          width: 2,
          fill: plot => this.shade(plot),
          points: {show: false}
        }
      ],
      hooks: {setCursor: [() => this.plot && this.tellMore()]}
    };
  }

  // While all values are 0, the axis has an arbitrary length and shows only the number 0.
  axisRate(value) {
    const [digits, ...unit] = short(value).split(/\s/);
    return value && !this.window.peak ? "" : [Number(digits), ...unit].join("\u00a0");
  }

  shade(plot) {
    const {top, height} = plot.bbox, fade = plot.ctx.createLinearGradient(0, top, 0, top + height);
    fade.addColorStop(0, withAlpha(this.colours.line, 0.3));
    fade.addColorStop(1, withAlpha(this.colours.line, 0.03));
    return fade;
  }
}

function axisTime(seconds) {
  const back = -seconds;
  return back === 0 ? "now" : back % 60 ? `−${back} s` : `−${back / 60} min`;
}

// #rrggbb with an alpha; other notations are taken as they are.
function withAlpha(colour, alpha) {
  const byte = Math.round(alpha * 255).toString(16).padStart(2, "0");
  return /^#[0-9a-f]{6}$/i.test(colour) ? colour + byte : colour;
}

export function createRate(root) {
  const chart = new RateChart(root);
  return {
    push: (seconds, rate) => chart.push(seconds, rate),
    clear: () => chart.clear(),
    destroy: () => chart.destroy()
  };
}
