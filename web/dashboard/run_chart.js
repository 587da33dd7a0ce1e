// SPDX-License-Identifier: MIT
//
// run_chart.js: the newest step of each rank over time, as lines by uPlot: a few in colour, those
// that lag in the colour of problems, and the rest thin. It is drawn when there are new points.

import uPlot from "uplot";

import {cssOf, pointPixels} from "./colours.js";
import {h, oncePerFrame, setText} from "./dom.js";
import {linesOf} from "./run_steps.js";
import {count, counted} from "./text.js";
import {onTheme, themeNow} from "./theme.js";

const HEIGHT = 240, COLUMNS = 240;
const HUES = 8, FIRST_HUE = 3;  // the lighter ones are too close to the background
const WHOLE =
  [1, 2, 5].map((f) => [...Array(15).keys()].map((e) => f * 10 ** e)).flat().sort((a, b) => a - b);
const HOUR = 3600e3;

const clocks = [
  [48 * HOUR, new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short"})],
  [2 * HOUR, new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit"})],
  [0, new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"})]
];

function clockOf(span) {
  return clocks.find(([least]) => span >= least)[1];
}

export class RunChart {
  constructor(root) {
    this.plot = null;
    this.drawn = "";
    this.head = h("p", {class: "run-lines small"});
    this.more = h("p", {class: "muted small", "data-testid": "run-chart-more"});
    this.holder = h("div", {class: "run-plot", role: "img", "data-testid": "run-chart"});
    root.append(this.head, this.holder, this.more);
    this.redraw = oncePerFrame(() => this.steps && this.paint());
    new ResizeObserver(() => this.redraw()).observe(this.holder);
    onTheme(() => {
      this.drawn = "";
      this.redraw();
    });
  }

  // The points (RunSteps) and the ranks that lag; null for none.
  show(steps, lagging) {
    this.steps = steps;
    this.lines = steps && linesOf([...steps.ranks.keys()], lagging);
    this.redraw();
    if (steps) return;
    this.drop();
    this.head.replaceChildren();
    setText(this.more, "");
  }

  drop() {
    if (this.plot) this.plot.destroy();
    this.plot = null;
    this.drawn = "";
  }

  paint() {
    const {span} = this.steps, width = Math.floor(this.holder.clientWidth);
    if (!span || width === 0) return this.drop();
    const [first, last] = span[0] < span[1] ? span : [span[0] - 1000, span[1] + 1000];
    const {lagging, full, thin} = this.lines, drawn = [...thin, ...full, ...lagging];
    const moments =
      Array.from({length: COLUMNS + 1}, (_, k) => first + k * (last - first) / COLUMNS);
    const data = [moments, ...drawn.map((rank) => this.steps.stepsAt(rank, moments))];
    this.format = clockOf(last - first);
    const key = JSON.stringify([lagging, full, thin, width]);
    if (key !== this.drawn) {
      this.drop();
      this.plot = new uPlot(this.options(width), data, this.holder);
      this.drawn = key;
    } else {
      this.plot.setData(data);
    }
    this.tell(drawn.length);
  }

  options(width) {
    const style = getComputedStyle(this.holder), named = (name) => style.getPropertyValue(name);
    const pixels = pointPixels(HUES, themeNow());
    const axis = {
      stroke: named("--muted"),
      grid: {stroke: named("--line"), width: 1},
      ticks: {show: false},
      font: `12px ${style.fontFamily}`
    };
    const line = (stroke, thickness) => ({stroke, width: thickness, points: {show: false}});
    const {lagging, full, thin} = this.lines;
    const hue = (k) => cssOf(pixels[FIRST_HUE + k]);
    this.head.replaceChildren(
      ...full.map((rank, k) => legend(`rank ${count(rank)}`, hue(k))),
      ...lagging.map((rank) => legend(`rank ${count(rank)}, lagging`, named("--bad"))),
      ...(thin.length ? [legend(this.restText(), named("--edge"))] : []));
    return {
      width,
      height: HEIGHT,
      padding: [8, 20, 0, 0],
      legend: {show: false},
      cursor: {y: false, drag: {x: false, y: false}, points: {show: false}},
      scales: {x: {time: false}},
      axes: [
        {
          ...axis,
          size: 28,
          space: 90,
          grid: {show: false},
          values: (_, splits) => splits.map((time) => this.format.format(time))
        },
        {
          ...axis,
          size: 72,
          gap: 6,
          incrs: WHOLE,
          values: (_, splits) => splits.map((step) => count(step))
        }
      ],
      series: [
        {}, ...thin.map(() => line(named("--edge"), 0.75)), ...full.map((_, k) => line(hue(k), 2)),
        ...lagging.map(() => line(named("--bad"), 3))
      ],
      hooks: {setCursor: [() => this.plot && this.tell()]}
    };
  }

  restText() {
    const {thin, full, lagging} = this.lines;
    const rest = this.steps.ranks.size - full.length - lagging.length;
    return thin.length < rest ? `${count(thin.length)} of ${count(rest)} others` :
                                counted(rest, "other");
  }

  // The steps of the drawn ranks under the pointer, otherwise at the end.
  tell() {
    const {data, cursor} = this.plot, isPointing = cursor.left >= 0 && cursor.idx !== null;
    const at = isPointing ? cursor.idx : COLUMNS;
    let least = Infinity, most = -Infinity;
    for (const line of data.slice(1)) {
      if (line[at] === null) continue;
      least = Math.min(least, line[at]);
      most = Math.max(most, line[at]);
    }
    const steps =
      least === most ? `step ${count(most)}` : `steps ${count(least)} to ${count(most)}`;
    const when = this.format.format(data[0][at]);
    const said = least <= most ? `${steps} at ${when}` : "";
    setText(this.more, said);
    if (!isPointing)
      this.holder.setAttribute("aria-label", `Newest step of each rank over time: ${said}`);
  }
}

function legend(text, colour) {
  const mark = h("span", {class: "run-line-mark", "aria-hidden": "true"});
  mark.style.background = colour;
  return h("span", {class: "run-line"}, mark, text);
}
