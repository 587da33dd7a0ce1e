// SPDX-License-Identifier: MIT
//
// runs.js: the list of training runs below the engines: name, ranks, steps, and the number of
// findings. The event stream of the page has only engines, so the list is asked for every few
// seconds while the page is connected and visible.
import {requestJson} from "./api.js";
import {fill, h, setHidden, setText} from "./dom.js";
import {rowText} from "./run_text.js";
import {counted} from "./text.js";

const PAUSE_MS = 4000;

export function runHash(name) {
  return `#run=${encodeURIComponent(name)}`;
}

function createRow(name) {
  const more = h("span", {}), found = h("span", {class: "row-findings"});
  const link =
    h("a", {href: runHash(name), "data-testid": "run-item", "data-run": name},
      h("span", {class: "row-name"}, name), h("span", {class: "row-more"}, more, found));
  return {element: h("li", {}, link), link, more, found};
}

export function createRuns(model, {onChange, onProblem}) {
  const part = document.getElementById("runs"), list = document.getElementById("run-list");
  let rows = new Map(), shown = "", timer = 0, isOn = false, isAsking = false;

  async function ask() {
    clearTimeout(timer);
    if (isAsking || !isOn) return;
    isAsking = true;
    try {
      const {runs} = await requestJson("GET", "/v1/runs");
      if (isOn) {
        model.runs = new Map(runs.map((run) => [run.name, run]));
        onChange();
      }
    } catch (problem) {
      onProblem(problem);
    }
    isAsking = false;
    if (isOn) timer = setTimeout(ask, PAUSE_MS);
  }

  // Rows are made again only when runs came or went, so that the focus stays where it is.
  function arrange() {
    const names = [...model.runs.keys()], key = names.join(" ");
    if (key === shown) return;
    shown = key;
    rows = new Map(names.map((name) => [name, rows.get(name) || createRow(name)]));
    fill(list, [...rows.values()].map(({element}) => element));
  }

  return {
    start() {
      isOn = true;
      ask();
    },
    stop() {
      isOn = false;
      clearTimeout(timer);
    },
    draw() {
      setHidden(part, model.runs.size === 0);
      arrange();
      for (const [name, row] of rows) {
        const run = model.runs.get(name), found = run.findings_total || 0;
        setText(row.more, rowText(run));
        setText(row.found, found ? counted(found, "finding") : "");
        if (name === model.run)
          row.link.setAttribute("aria-current", "true");
        else
          row.link.removeAttribute("aria-current");
      }
    }
  };
}
