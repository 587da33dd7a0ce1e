// SPDX-License-Identifier: MIT
//
// list.js: the list of engines: name, tokens, and the rate of those being fed. A row is created
// once and then updated where something changed. On a narrow page the list collapses into a
// button; choosing an engine collapses it again.
import {h, setHidden, setText} from "./dom.js";
import {namesWith} from "./model.js";
import {counted, rate, short} from "./text.js";

const SEARCH_FROM = 13;  // engines; a shorter list needs no search field

export function engineHash(name) {
  return `#engine=${encodeURIComponent(name)}`;
}

function createRow(name) {
  const tokens = h("span", {class: "row-tokens"}), live = h("span", {class: "row-rate"});
  const link =
    h("a", {href: engineHash(name), "data-testid": "engine-item", "data-engine": name},
      h("span", {class: "row-name"}, name), h("span", {class: "row-more"}, tokens, live));
  return {element: h("li", {}, link), link, tokens, live};
}

function drawRow(row, engine, isChosen) {
  const isBusy = engine.rate > 0 || engine.incoming > 0;
  setText(row.tokens, engine.tokens ? `${short(engine.tokens)} tokens` : "empty");
  setText(row.live, engine.rate > 0 ? rate(engine.rate) : "");
  row.link.classList.toggle("is-busy", isBusy);
  if (isChosen)
    row.link.setAttribute("aria-current", "true");
  else
    row.link.removeAttribute("aria-current");
}

export function createList(model) {
  const [list, search, none, toggle, side] = [
    "engine-list", "search", "none-found", "side-toggle", "side"
  ].map((id) => document.getElementById(id));
  const rows = new Map();

  function rowOf(name) {
    if (!rows.has(name)) rows.set(name, createRow(name));
    return rows.get(name);
  }

  // Shows these rows in order; elements are moved only if the order changed.
  function arrange(names) {
    names.forEach((name, at) => {
      const {element} = rowOf(name);
      if (list.children[at] !== element) list.insertBefore(element, list.children[at] || null);
    });
    while (list.children.length > names.length) list.lastElementChild.remove();
    for (const name of rows.keys())
      if (!model.engines.has(name)) rows.delete(name);
  }

  function fold(isOpen) {
    side.classList.toggle("is-open", isOpen);
    toggle.setAttribute("aria-expanded", String(isOpen));
  }

  toggle.addEventListener("click", () => fold(!side.classList.contains("is-open")));
  for (const one of [list, document.getElementById("run-list")])
    one.addEventListener("click", () => fold(false));

  function draw() {
    setHidden(search, model.engines.size < SEARCH_FROM);
    const names = namesWith(model, search.hidden ? "" : search.value);
    arrange(names);
    for (const name of names)
      drawRow(rows.get(name), model.engines.get(name), name === model.chosen);
    setHidden(none, names.length > 0 || model.engines.size === 0);
    setHidden(document.getElementById("no-engines"), model.engines.size > 0);
    const all = counted(model.engines.size, "engine");
    const both = model.runs.size ? `${all}, ${counted(model.runs.size, "run")}` : all;
    setText(toggle, (!model.isMissing && (model.run ?? model.chosen)) || both);
  }

  search.addEventListener("input", draw);
  return {draw, fold};
}
