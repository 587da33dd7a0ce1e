// SPDX-License-Identifier: MIT
//
// report_draw.js: building blocks of charts: elements, scales, marks, labels that avoid each other,
// and the tooltip for the hovered or focused mark.
"use strict";

const SVG_SPACE = "http://www.w3.org/2000/svg";

function fillIn(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  for (const child of children.flat())
    if (child !== null && child !== undefined && child !== "") element.append(child);
  return element;
}

function html(tag, attributes, ...children) {
  return fillIn(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fillIn(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function lineAt(look, x1, y1, x2, y2, more) {
  return svg("line", {class: look, x1, y1, x2, y2, ...more});
}

function boxAt(look, x, y, width, height, more) {
  return svg("rect", {class: look, x, y, width, height, ...more});
}

function textAt(look, x, y, words, anchor) {
  return svg("text", {class: look, x, y, "text-anchor": anchor}, words);
}

// The visible name or figure of a mark, hidden from screen readers, which read the mark itself.
function nameAt(look, x, y, words, anchor) {
  const text = textAt(look, x, y, words, anchor);
  text.setAttribute("aria-hidden", "true");
  return text;
}

function canvasFor(width, height, label) {
  return svg(
    "svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label});
}

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size = 12, weight = 400) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// The text, truncated if it is too wide.
function fitted(text, width, size) {
  if (textWidth(text, size) <= width) return text;
  let keep = text.length - 1;
  while (keep > 1 && textWidth(text.slice(0, keep) + "…", size) > width) keep--;
  return text.slice(0, keep) + "…";
}

function linearScale(from, to, low, high) {
  return value => low + (value - from) / (to - from || 1) * (high - low);
}

function logScale(from, to, low, high) {
  const a = Math.log(from), b = Math.log(to);
  return value => low + (Math.log(value) - a) / (b - a || 1) * (high - low);
}

// About `count` round numbers from 0 to `to`.
function linearTicks(to, count) {
  const rough = to / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough);
  const ticks = [];
  for (let k = 0; k * step <= to * 1.0001; k++) ticks.push(k * step);
  return ticks;
}

// Powers of ten, with 2 and 5 in between if there are few.
function logTicks(from, to) {
  const factors = Math.log10(to / from) < 3.2 ? [1, 2, 5] : [1], ticks = [];
  for (let p = Math.floor(Math.log10(from)); p <= Math.ceil(Math.log10(to)); p++)
    for (const f of factors)
      if (f * 10 ** p >= from * 0.999 && f * 10 ** p <= to * 1.001) ticks.push(f * 10 ** p);
  return ticks;
}

function shapeAt(kind, x, y, r, attributes) {
  if (kind === "circle") return svg("circle", {cx: x, cy: y, r, ...attributes});
  if (kind === "square")
    return svg(
      "rect", {x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8, ...attributes});
  const d = kind === "triangle" ?
    `M${x} ${y - r * 1.15}L${x + r * 1.1} ${y + r * 0.85}H${x - r * 1.1}Z` :
    `M${x} ${y - r * 1.3}L${x + r * 1.3} ${y}L${x} ${y + r * 1.3}L${x - r * 1.3} ${y}Z`;
  return svg("path", {d, ...attributes});
}

// Stripes for peers, one pattern per backend; ids are unique on the page.
let patternCount = 0;
function hatch(canvas, hue) {
  const id = "hatch" + patternCount++;
  canvas.append(svg(
    "defs", {},
    svg(
      "pattern", {
        id,
        class: hue,
        width: 7,
        height: 7,
        patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)"
      },
      svg("rect", {class: "hatch-back", width: 7, height: 7}),
      svg("line", {class: "hatch-line", x1: 0, y1: 0, x2: 0, y2: 7}))));
  return `url(#${id})`;
}

// A group that can be hovered and focused. The first one of a chart is in the tab order; arrow keys
// move to the others.
function markOf(canvas, hue, tip, index, ...parts) {
  const isFirst = !canvas.querySelector(".mark");
  const said = tip.map(line => line.join(" ")).join(", ");
  const mark = svg(
    "g", {
      class: "mark " + hue,
      role: "img",
      "aria-label": said,
      tabindex: isFirst ? 0 : -1,
      "data-row": index
    },
    ...parts);
  mark.tip = tip;
  canvas.append(mark);
  return mark;
}

function overlap(a, b) {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

// The place for a label of w by h next to the point: as near as possible, at most `reach` steps
// away, inside `room`, without overlapping anything in `taken`. null: there is no place.
function placeLabel(point, w, h, room, taken, reach) {
  for (let step = 0; step < reach; step++)
    for (const dy of step === 0 ? [0] : [-step * 7, step * 7])
      for (const side of [1, -1]) {
        const gap = 9 + Math.min(10, Math.abs(dy) / 3);
        const box =
          {x: side > 0 ? point.x + gap : point.x - gap - w, y: point.y + dy - h / 2, w, h};
        const isInside = box.x >= room.x && box.y >= room.y && box.x + w <= room.x + room.w &&
          box.y + h <= room.y + room.h;
        if (isInside && !taken.some(t => overlap(box, t))) return {...box, side, dy};
      }
  return null;
}

// Moves labels of one column apart: sorted by y, at least `gap` between them, inside [low, high].
function spread(labels, gap, low, high) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((l, k) => {
    l.at = Math.max(l.y, k ? labels[k - 1].at + gap : low);
  });
  for (let k = labels.length - 1; k >= 0; k--)
    labels[k].at = Math.min(labels[k].at, k < labels.length - 1 ? labels[k + 1].at - gap : high);
  return labels;
}

function showTip(mark) {
  const tip = document.getElementById("tip"), box = mark.getBoundingClientRect();
  const [[name], ...lines] = mark.tip;
  tip.replaceChildren(
    html("b", {}, name),
    html("dl", {}, ...lines.flatMap(([label,
                                      value]) => [html("dt", {}, label), html("dd", {}, value)])));
  tip.hidden = false;
  const x = Math.min(box.left + box.width / 2 + 14, innerWidth - tip.offsetWidth - 12);
  const above = box.top - tip.offsetHeight - 10;
  tip.style.left = Math.max(12, x) + scrollX + "px";
  tip.style.top = (above > 8 ? above : box.bottom + 10) + scrollY + "px";
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

function moveFocus(event) {
  const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
  const mark = event.target.closest?.(".mark");
  if (event.key === "Escape") hideTip();
  if (!step || !mark) return;
  const marks = [...mark.ownerSVGElement.querySelectorAll(".mark")];
  const next = marks[(marks.indexOf(mark) + step + marks.length) % marks.length];
  mark.setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
  event.preventDefault();
}

function startTips() {
  const react = event => {
    const mark = event.target.closest?.(".mark");
    if (mark)
      showTip(mark);
    else
      hideTip();
  };
  document.addEventListener("pointerover", react);
  document.addEventListener("focusin", react);
  document.addEventListener("keydown", moveFocus);
}

// The legend: one entry per backend with its shape, and further entries of the chart that occur.
function legend(model, ...more) {
  const backends = [...new Set(model.rows.filter(r => r.isOk).map(r => r.backend))];
  const icon = part => svg("svg", {viewBox: "0 0 18 14", "aria-hidden": "true"}, part);
  return html(
    "ul", {class: "legend"},
    ...backends.map(
      b => html("li", {class: hueOf(b)}, icon(shapeAt(shapeOf(b), 9, 7, 5, {class: "fill"})), b)),
    ...more.filter(([, , occurs]) => occurs)
      .map(([part, text]) => html("li", {class: "b-cpu"}, icon(part), text)));
}
