// SPDX-License-Identifier: MIT
//
// report_roofline.js: operations per second over operations per byte moved, both logarithmic. A
// memory bandwidth of B bytes per second allows B times x operations: a diagonal. A point on the
// diagonal has reached the ceiling; a point left of another with the same op moves more bytes for
// the same result.
//
// Ceilings can lie closely together in any order, and so can contenders: the names of ceilings are
// at the right end of their diagonals, moved apart. A contender's name is next to its point if it
// fits there without touching another name, point or diagonal; otherwise a number is, and the name
// is below the chart.
"use strict";

const ROOFS = [
  {name: "read", short: "read", look: ""},
  {name: "copy", short: "copy", look: "second"},
  {name: "to_device_pinned", short: "bus", look: "bus"},
];

// The device's ceilings, and the fastest that any of its rows moved data that fit into the cache:
// the roof of the cache is at least that high.
function roofsOf(model, rows) {
  const roofs =
    ROOFS.map(r => ({...r, ceiling: ceilingOf(model, rows[0], r.name)}))
      .filter(r => r.ceiling?.gb_s)
      .map(r => ({
             ...r,
             rate: r.ceiling.gb_s,
             band: ceilingBand(r.ceiling),
             text: `${r.short === "bus" ? "pinned bus" : r.short} ${figure(r.ceiling.gb_s, "GB/s")}`
           }));
  const best =
    Math.max(0, ...rows.filter(r => r.cache_resident).map(r => r.kernel.gb_s * r.passes));
  const read = roofs.find(r => r.name === "read");
  if (read && best > read.rate * 1.02)
    roofs.push({
      name: "cache",
      short: "cache",
      look: "cache",
      rate: best,
      band: [best, best],
      text: `cache at least ${figure(best, "GB/s")}, by the fastest row in it`
    });
  return roofs;
}

function rooflineSection(model) {
  const devices =
    model.raced.map(rows => rows.filter(r => r.operations && r.passes)).filter(rows => rows.length);
  if (!devices.length) return null;
  return section(
    "roofline", "Roofline",
    "Each device's measured ceilings as diagonals, and the contenders below them. The nearer " +
      "to its diagonal, " +
      "the less there is to gain; further right means fewer bytes moved for the same work. " +
      "Names are of the largest size; smaller sizes and further cases are pale.",
    legend(model),
    html(
      "div", {class: "figures"},
      ...devices.map(
        rows => html(
          "figure", {"data-chart": "roofline"},
          html(
            "figcaption", {}, html("h3", {}, rows[0].device), html("small", {}, rows[0].backend)),
          roofKey(roofsOf(model, rows)), chart(width => drawRoofline(model, rows, width))))));
}

function roofKey(roofs) {
  return html(
    "ul", {class: "legend"},
    ...roofs.map(
      r => html(
        "li", {},
        svg(
          "svg", {class: "long", viewBox: "0 0 28 14", "aria-hidden": "true"},
          lineAt("ceiling " + r.look, 0, 7, 28, 7)),
        r.text)));
}

function rooflinePoint(row) {
  return {
    row,
    isLabelled: row.group ? row.group.isFront : true,
    intensity: row.operations / (row.passes * row.useful_bytes),
    speed: row.operations / (row.kernel.median_ms / 1000),
  };
}

// High enough that every diagonal ends at the right edge.
function rooflineFrame(points, roofs) {
  const xs = points.map(p => p.intensity), ys = points.map(p => p.speed);
  const x = [Math.min(...xs) / 2.5, Math.max(...xs) * 2.5];
  const top = Math.max(...roofs.map(r => r.rate * 1e9 * x[1]), Math.max(...ys)) * 1.25;
  return {x, y: [Math.min(...ys, top / 10) / 2, top]};
}

function drawRoofline(model, rows, width) {
  for (const g of model.groups)
    for (const r of g.rows) r.group = g;
  const points = rows.map(rooflinePoint), roofs = roofsOf(model, rows);
  const frame = rooflineFrame(points, roofs);
  const height = Math.round(Math.min(500, Math.max(360, width * 0.72)));
  const room = {x: 52, y: 22, w: width - 52 - 46, h: height - 66};
  const canvas = canvasFor(
    width, height,
    `Roofline of ${rows[0].device}: ${points.length} contenders, ${roofs.length} ceilings`);
  const plot = {
    room,
    frame,
    x: logScale(...frame.x, room.x, room.x + room.w),
    y: logScale(...frame.y, room.y + room.h, room.y),
  };
  drawRooflineAxes(canvas, plot);
  const taken = drawRoofs(canvas, plot, roofs);
  const numbered = drawPoints(canvas, plot, points, taken);
  return html(
    "div", {}, canvas,
    numbered.length ?
      html("ol", {class: "numbered"}, ...numbered.map(text => html("li", {}, text))) :
      null);
}

function drawRooflineAxes(canvas, {room, frame, x, y}) {
  for (const tick of logTicks(...frame.x))
    canvas.append(
      lineAt("grid", x(tick), room.y, x(tick), room.y + room.h),
      textAt("soft small", x(tick), room.y + room.h + 16, String(+tick.toPrecision(2)), "middle"));
  for (const tick of logTicks(...frame.y))
    canvas.append(
      lineAt("grid", room.x, y(tick), room.x + room.w, y(tick)),
      textAt("soft small", room.x - 8, y(tick) + 4, metric(tick), "end"));
  canvas.append(
    svg("path", {class: "axis", d: `M${room.x} ${room.y}V${room.y + room.h}H${room.x + room.w}`}),
    textAt("soft small", room.x + room.w, room.y + room.h + 36, "operations per byte moved", "end"),
    textAt("soft small", 0, 10, "operations per second"));
}

// Draws the diagonals with their names at the right; returns what they cover, in small boxes.
function drawRoofs(canvas, {room, frame, x, y}, roofs) {
  const taken = [], edge = room.x + room.w;
  const lineOf = gb_s => {
    const rate = gb_s * 1e9, from = Math.max(frame.x[0], frame.y[0] / rate);
    return {x1: x(from), y1: y(from * rate), x2: edge, y2: y(frame.x[1] * rate)};
  };
  const ends = roofs.map(r => {
    const line = lineOf(r.rate), [low, high] = r.band.map(lineOf);
    canvas.append(
      svg("path", {
        class: "band",
        d: `M${low.x1} ${low.y1}L${edge} ${low.y2}V${high.y2}L${high.x1} ${high.y1}Z`
      }),
      svg("line", {class: "ceiling " + r.look, "data-ceiling": r.name, ...line}));
    for (let at = line.x1; at < edge; at += 4) {
      const share = (at - line.x1) / (edge - line.x1);
      taken.push({x: at, y: line.y1 + share * (line.y2 - line.y1) - 2, w: 4, h: 4});
    }
    return {short: r.short, y: line.y2};
  });
  for (const end of spread(ends, 13, room.y, room.y + room.h))
    canvas.append(
      svg("path", {class: "leader", d: `M${edge} ${end.y}L${edge + 7} ${end.at}`}),
      textAt("small soft", edge + 9, end.at + 4, end.short));
  return taken;
}

// Contenders that differ only in memory and have the same position share a label.
function labelsOf(points) {
  const labels = [];
  for (const p of points) {
    const near = labels.find(
      l => l.row.op === p.row.op && l.row.contender === p.row.contender &&
        Math.hypot(l.x - p.x, l.y - p.y) < 9);
    if (near)
      near.memories.push(p.row.memoryLabel);
    else
      labels.push({row: p.row, x: p.x, y: p.y, memories: [p.row.memoryLabel]});
  }
  return labels;
}

// From the longest to the shortest text; the first one that fits is used. A shorter one is a choice
// only if it is no other label's, too.
function labelTexts(label, labels) {
  const memories = label.memories.filter(Boolean);
  const list = memories.length > 2 ? `${memories.length} memories` : memories.join(", ");
  const shorter = [l => `${l.row.op} ${l.row.contender}`, l => l.row.contender];
  const own = shorter.filter(of => labels.filter(l => of(l) === of(label)).length === 1);
  return own.length ? own.map(of => of(label)) : [shorter[0](label) + (list ? ` (${list})` : "")];
}

// Returns the names of the points that have a number in their place.
function drawPoints(canvas, plot, points, taken) {
  for (const p of points) {
    p.x = plot.x(p.intensity);
    p.y = plot.y(p.speed);
  }
  const shown = points.filter(p => p.isLabelled).sort((a, b) => b.speed - a.speed);
  for (const {x, y, isLabelled} of points) {
    const r = isLabelled ? 6 : 3;
    taken.push({x: x - r, y: y - r, w: 2 * r, h: 2 * r});
  }
  const leaders = svg("g", {}), numbered = [];
  canvas.append(leaders);
  for (const p of points) {
    const {row} = p, r = p.isLabelled ? 5.5 : 3.5;
    const look = row.peer ? {class: "outline", "stroke-width": 2} : {class: "fill"};
    markOf(
      canvas, hueOf(row.backend), rowTip(row), row.index,
      shapeAt("circle", p.x, p.y, r + 4, {class: "ring"}),
      shapeAt(shapeOf(row.backend), p.x, p.y, r, {...look, opacity: p.isLabelled ? 1 : 0.35}));
  }
  const labels = labelsOf(shown);
  for (const label of labels) {
    const texts = labelTexts(label, labels), number = String(numbered.length + 1);
    const place = (text, reach) =>
      ({text, box: placeLabel(label, textWidth(text, 11) + 4, 14, plot.room, taken, reach)});
    const found = texts.map(text => place(text, 5)).find(p => p.box) || place(number, 60);
    if (found.text === number) numbered.push(texts[0]);
    if (found.box) drawLabel(canvas, leaders, label, found.text, found.box, taken);
  }
  return numbered;
}

function drawLabel(canvas, leaders, label, text, box, taken) {
  const edge = box.side > 0 ? box.x - 2 : box.x + box.w + 2;
  taken.push(box);
  if (box.dy)
    leaders.append(
      svg("path", {class: "leader", d: `M${label.x} ${label.y}L${edge} ${box.y + box.h / 2}`}));
  canvas.append(nameAt(
    "small halo" + (label.row.peer ? " soft" : ""), box.side > 0 ? box.x : box.x + box.w,
    box.y + 11, text, box.side > 0 ? "start" : "end"));
}
