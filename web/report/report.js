// SPDX-License-Identifier: MIT
//
// report.js: builds the page from the JSON document inside it, and updates it for theme, width and
// printing. Each chart is drawn in its own file (report_*.js); all files are joined into one script
// when iron is built, so they share one scope.
//
// Text from the document is only ever set as text, never as HTML.
"use strict";

// Charts are drawn for their current width, so that text has the same size on any screen.
const charts = [];  // {holder, draw, width}

function chart(draw) {
  const holder = html("div", {class: "holder"});
  charts.push({holder, draw, width: 0});
  return holder;
}

// width: of all charts; without one, each takes the width of its place.
function drawAll(isForced, width) {
  const most = document.getElementById("main").clientWidth - 80;
  for (const c of charts) {
    const now = width || Math.max(240, c.holder.clientWidth || most);
    if (!isForced && Math.abs(now - c.width) < 2) continue;
    c.width = now;
    c.holder.replaceChildren(c.draw(now));
  }
  showCutSides();
}

function section(id, title, lead, ...children) {
  const heading = html("h2", {id: id + "-title"}, title);
  return html(
    "section", {id, "aria-labelledby": heading.id}, heading,
    lead ? html("p", {class: "lead"}, lead) : null, ...children);
}

function sizeText(group) {
  return [group.sizeName, group.size].filter(Boolean).join(", ");
}

function summary(title, ...notes) {
  return html("summary", {}, title, ...notes.map(note => html("small", {}, note)));
}

// A collapsible section for each op, type and parameters, with its sizes inside, the largest first;
// the first section of each op is open, and in each the largest size.
function foldedGroups(groups, note, body) {
  return grouped(groups, g => g.title).map(same => {
    const sizes = [...same].sort((a, b) => b.bytes - a.bytes), [first] = sizes;
    const open = sizes.some(g => g.isFront) ? "" : null, title = html("b", {}, first.title);
    if (sizes.length === 1)
      return html(
        "details", {class: "group", open}, summary(title, sizeText(first), note(first)),
        html("div", {}, ...body(first)));
    const range = `${sizes.length} sizes, ${bytesText(sizes[sizes.length - 1].bytes)} to ${
      bytesText(first.bytes)}`;
    return html(
      "details", {class: "group", open}, summary(title, range),
      html(
        "div", {},
        ...sizes.map(
          g => html(
            "details", {class: "size", open: g === first ? "" : null},
            summary(html("span", {}, sizeText(g)), note(g)), html("div", {}, ...body(g))))));
  });
}

function build() {
  const read = id => JSON.parse(document.getElementById(id).textContent);
  const model = readModel(read("data"), read("ops"));
  const sections = [
    overviewSection(model),
    comparisonSection(model, read("before")),
    rooflineSection(model),
    rankingSection(model),
    paramsSection(model),
    scalingSection(model),
    scopesSection(model),
    samplesSection(model),
    skippedSection(model),
    rowsSection(model),
    aboutSection(model),
    machineSection(model),
    document.getElementById("reading"),
  ].filter(Boolean);
  const main = document.getElementById("main");

  document.getElementById("headline").textContent = headline(model);
  document.getElementById("subline").textContent = subline(model);
  document.title = ["iron arena", model.host.name, model.host.date.slice(0, 10)].join(" · ");
  main.replaceChildren(...sections);
  document.getElementById("nav").replaceChildren(
    ...sections.filter(s => s.id !== "overview")
      .map(s => html("a", {href: "#" + s.id}, s.querySelector("h2").textContent)));
}

function remembered(value) {  // storage may be unavailable for file: pages
  try {
    if (value) localStorage.setItem("iron-theme", value);
    return localStorage.getItem("iron-theme");
  } catch {
    return null;
  }
}

function setTheme(theme) {
  const button = document.getElementById("theme");
  document.documentElement.dataset.theme = theme;
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(theme === "dark"));
  button.setAttribute(
    "aria-label", theme === "dark" ? "Switch to light colours" : "Switch to dark colours");
}

function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const wanted = () => remembered() || (system.matches ? "dark" : "light");
  setTheme(wanted());
  system.addEventListener("change", () => setTheme(wanted()));
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remembered(theme);
    setTheme(theme);
  });
}

// On paper all sections are open, except the texts about the ops: those that are open on the
// screen. Charts are drawn as wide as an A4 page with its margins, so that their texts are not
// shrunk.
const PAPER = 640;

function startPrinting() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .about)")];
    for (const d of folded) d.open = true;
    drawAll(false, PAPER);
  });
  addEventListener("afterprint", () => {
    for (const d of folded) d.open = false;
    drawAll(false);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  startTheme();
  build();
  drawAll(true);
  startTips();
  startPrinting();
  let frame = 0;
  const later = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => drawAll(false));
  };
  addEventListener("resize", later);
  document.addEventListener("toggle", later, true);
});
