// SPDX-License-Identifier: MIT
//
// run.js: the view of the selected training run: figures, the steps of its ranks over time, the
// findings as sentences, and a comparison with another run. The run's own event stream says when
// something has changed; then the ranks and the findings are fetched, at most once per second.
import {clearProblem, showProblem} from "./alerts.js";
import {requestJson, runPath} from "./api.js";
import {fill, h, oncePerFrame, setHidden, setText} from "./dom.js";
import {RunChart} from "./run_chart.js";
import {laggingRanks, RunSteps} from "./run_steps.js";
import {comparisonText, lagText, newestFirst} from "./run_text.js";
import {createStream} from "./stream.js";
import {count, grouped, moment, short} from "./text.js";

const PAUSE_MS = 1000, RANK_PAUSE_MS = 2;  // between two fetches; runs of many ranks take longer
const PAGE = 20;  // findings shown at first, and more with each press of the button

const at = (id) => document.getElementById(id);

export function createRunView(model, {onMissing, onGone, onProblem}) {
  const chart = new RunChart(at("run-chart-root")), form = at("compare-form");
  let name = null, rows = [], lagging = [], check = null, steps = new RunSteps(), limit = PAGE;
  let isStale = false, isAsking = false, wantsProgress = false, askedAt = -PAUSE_MS, timer = 0;
  const draw = oncePerFrame(() => name !== null && drawNow());

  const stream = createStream({
    addressOf: (run) => run === null ? null : runPath(run, "/events"),
    onEvent(event) {
      if (event === "deleted") return onGone(name);
      isStale = true;
      follow();
    },
    onState(state) {
      if (state === "connected") wantsProgress = true;  // it may have missed much
      if (state === "no-such-run" && name !== null) onMissing(name);
    }
  });

  async function fetchAll(run) {
    if (wantsProgress) {
      const {by_rank} = await requestJson("GET", runPath(run, "/progress"));
      if (run !== name) return;
      wantsProgress = false;
      steps.load(by_rank);
    }
    const {by_rank} = await requestJson("GET", runPath(run));
    if (run !== name) return;
    rows = by_rank;
    steps.update(rows);
    lagging = laggingRanks(rows);
    chart.show(steps, lagging.map(({rank}) => rank));
    draw();
    // Waits on the server until all records are checked, but not long.
    const found = await requestJson("GET", runPath(run, "/findings"));
    if (run !== name) return;
    check = found;
    if (!check.is_current) isStale = true;
    draw();
  }

  async function ask() {
    isAsking = true;
    isStale = false;
    askedAt = performance.now();
    try {
      await fetchAll(name);
    } catch (problem) {
      if (problem.kind === "busy")
        isStale = true;  // not checked yet
      else if (problem.kind !== "no-such-run")
        onProblem(problem);
    }
    isAsking = false;
    follow();
  }

  function follow() {
    if (name === null || isAsking || timer || !isStale || document.hidden) return;
    timer = setTimeout(() => {
      timer = 0;
      if (name !== null && !isAsking) ask();
    }, Math.max(0, askedAt + PAUSE_MS + RANK_PAUSE_MS * rows.length - performance.now()));
  }

  function drawFigures() {
    const number = (value) => check ? count(value) : "…";
    const newest = rows.reduce((best, row) => best > row.last_time ? best : row.last_time, "");
    setText(at("run-title"), name);
    setText(at("run-changed"), newest ? `Newest record ${moment(newest)}` : "");
    setText(at("run-steps"), number(check?.steps));
    setText(
      at("run-last-step"),
      check && check.last_step !== null ?
        `${count(check.first_step)} to ${count(check.last_step)}` :
        "");
    setText(at("run-ranks"), count(rows.length));
    setText(
      at("run-world"),
      check ? `of ${count(check.world)}` +
          (check.missing_ranks ? `, ${count(check.missing_ranks)} missing` : "") :
                                 "");
    setText(at("run-samples"), check ? short(check.samples) : "…");
    setText(at("run-tokens"), check ? short(check.tokens) : "…");
    setText(at("run-samples-more"), check && check.samples > 999 ? count(check.samples) : "");
    setText(at("run-tokens-more"), check && check.tokens > 999 ? count(check.tokens) : "");
    setText(at("run-found"), number(check?.findings_total));
    at("run-found").classList.toggle("is-bad", Boolean(check && check.findings_total));
    setText(at("run-checked"), check && !check.is_current ? "being checked" : "");
    setHidden(at("run-lag"), lagging.length === 0);
    setText(at("run-lag"), lagText(lagging));
  }

  function drawFindings() {
    const all = check ? newestFirst(check.findings) : [];
    const total = check ? check.findings_total : 0;
    const kinds = check ? Object.entries(check.totals).filter(([, n]) => n > 0) : [];
    fill(at("findings"), all.slice(0, limit).map(({sentence}) => h("li", {}, grouped(sentence))));
    setHidden(at("findings"), all.length === 0);
    setText(
      at("findings-none"),
      check ? (total ? "" : "None: nothing is repeated, missing or in conflict.") :
              "Not checked yet.");
    setText(
      at("findings-kinds"),
      kinds.map(([kind, n]) => `${kind.replaceAll("-", " ")}: ${count(n)}`).join(" · "));
    setHidden(at("findings-more"), all.length <= limit);
    setText(
      at("findings-rest"), total > all.length ? "Of each kind, the first 200 are listed." : "");
  }

  // The other runs in the choice of the reference; the chosen one stays.
  function drawChoice() {
    const select = form.elements.reference,
          others = [...model.runs.keys()].filter((n) => n !== name);
    const key = others.join(" ");
    setHidden(form, others.length === 0);
    setHidden(at("compare-none"), others.length > 0);
    if (select.dataset.names === key) return;
    const before = select.value;
    select.dataset.names = key;
    fill(select, others.map((other) => h("option", {value: other}, other)));
    if (others.includes(before)) select.value = before;
  }

  function drawNow() {
    drawFigures();
    drawFindings();
    drawChoice();
  }

  async function compare(event) {
    event.preventDefault();
    const run = name, reference = form.elements.reference.value, button = at("compare");
    if (button.disabled) return;
    button.disabled = true;
    clearProblem();
    tellComparison("Comparing …", "");
    try {
      const query = `?reference=${encodeURIComponent(reference)}`;
      const diff = await requestJson("GET", runPath(run, "/diff" + query));
      if (run === name)
        tellComparison(
          comparisonText(run, reference, diff), diff.kind === "equal" ? "equal" : "differs");
    } catch (problem) {
      tellComparison("", "");
      showProblem(problem, form);
    }
    button.disabled = false;
  }

  function tellComparison(text, kind) {
    setText(at("compare-result"), text);
    at("compare-result").dataset.kind = kind;
  }

  form.addEventListener("submit", compare);
  at("findings-more").addEventListener("click", () => {
    limit += PAGE;
    draw();
  });
  return {
    // Shows a run; null for none.
    show(run) {
      clearTimeout(timer);
      [name, rows, lagging, check, limit, timer] = [run, [], [], null, PAGE, 0];
      [isStale, wantsProgress, steps] = [false, true, new RunSteps()];
      chart.show(null, []);
      tellComparison("", "");
      stream.stop();
      stream.follow(run);
      if (run === null) return;
      stream.start();
      draw();
    },
    draw
  };
}
