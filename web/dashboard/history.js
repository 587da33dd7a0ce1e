// SPDX-License-Identifier: MIT
//
// history.js: the table of batches, newest first, one page at a time. The first page follows the
// engine: new batches are fetched with one request at a time and at most two per second. Older
// pages do not change.
import {enginePath, requestJson} from "./api.js";
import {fill, h, setHidden, setText} from "./dom.js";
import {count} from "./text.js";

const PAGE = matchMedia("(max-width: 48rem)").matches ? 10 : 20;
const PAUSE_MS = 500;
const COLUMNS = ["Batch", "Position", "Tokens", "XOR", "Sum"];

function rowOf(batch) {
  const values =
    [count(batch.batch), count(batch.position), count(batch.tokens), batch.xor, batch.sum];
  return h("tr", {}, values.map((value, k) => h("td", {"data-label": COLUMNS[k]}, value)));
}

export function createHistory({onProblem}) {
  const [table, rows, span, none, newest, newer, older] = [
    "history", "history-rows", "history-span", "history-none", "newest", "newer", "older"
  ].map((id) => document.getElementById(id));
  // until: the page ends before this batch; null: it ends with the newest
  let name = null, total = 0, first = 0, until = null, shown = "", isAsking = false, askedAt = 0,
      timer = 0;

  const end = () => until === null ? total : Math.min(until, total);
  const begin = () => Math.max(Math.min(first, end()), end() - PAGE);
  const wanted = () => `${name} ${begin()} ${end()}`;

  function drawFrame() {
    setHidden(table, total === 0);
    setHidden(none, total > 0);
    setText(span, total ? `${count(begin())}–${count(end() - 1)} of ${count(total)}` : "");
    newest.disabled = newer.disabled = end() === total;
    older.disabled = begin() <= first;
  }

  async function ask() {
    const mine = wanted(), query = `?since=${begin()}&limit=${Math.max(1, end() - begin())}`;
    isAsking = true;
    askedAt = performance.now();
    try {
      const page = await requestJson("GET", enginePath(name, "/batches" + query));
      if (mine.startsWith(`${name} `)) {
        fill(rows, page.batches.reverse().map(rowOf));
        shown = mine;
        first = page.first;
        drawFrame();
      }
    } catch (problem) {
      onProblem(problem);
    }
    isAsking = false;
    follow();
  }

  // Fetches the page if it is out of date, but not too often, and not while the tab is hidden.
  function follow() {
    if (name === null || isAsking || timer || shown === wanted() || document.hidden) return;
    if (total === 0) {
      fill(rows);
      shown = wanted();
      return;
    }
    timer = setTimeout(() => {
      timer = 0;
      if (name !== null && !isAsking && shown !== wanted()) ask();
    }, Math.max(0, askedAt + PAUSE_MS - performance.now()));
  }

  function turn(to) {
    until = to === null || to >= total ? null : Math.max(first + PAGE, to);
    askedAt = 0;  // the user is waiting
    drawFrame();
    follow();
  }

  newest.addEventListener("click", () => turn(null));
  newer.addEventListener("click", () => turn(end() + PAGE));
  older.addEventListener("click", () => turn(begin()));
  return {
    // Shows the newest page of an engine; null for no engine.
    show(engineName) {
      [name, total, first, until, shown, askedAt] = [engineName, 0, 0, null, "", 0];
      fill(rows);
      drawFrame();
    },
    // The engine has this many batches now.
    update(batches) {
      if (batches !== total) {
        total = batches;
        drawFrame();
      }
      follow();
    }
  };
}
