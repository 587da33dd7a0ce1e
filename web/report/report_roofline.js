// SPDX-License-Identifier: MIT
//
// report_roofline.js: operations per second over operations per byte moved, both logarithmic. A
// memory bandwidth of B bytes per second allows B times x operations: a diagonal. A point on the
// diagonal has reached the ceiling; a point left of another with the same op moves more bytes for
// the same result.
"use strict";

function rooflineSection(model) {
  const devices =
    model.raced.map(rows => rows.filter(r => r.operations && r.passes)).filter(rows => rows.length);
  if (!devices.length) return null;
  return section(
    "roofline", "Roofline",
    "Each device's measured ceilings as diagonals, and the contenders below them. The nearer " +
      "to its diagonal, " +
      "the less there is to gain; further right means fewer bytes moved for the same work. " +
      "Labels name the largest size; smaller sizes and further cases are pale.",
    legend(model),
    html(
      "div", {class: "figures"},
      ...devices.map(
        rows => html(
          "figure", {"data-chart": "roofline"},
          html(
            "figcaption", {}, html("h3", {}, rows[0].device), html("small", {}, rows[0].backend)),
          chart(width => drawRoofline(model, rows, width))))));
}

function rooflinePoint(row) {
  return {
    row,
    isLabelled: row.group ? row.group.isFront : true,
    intensity: row.operations / (row.passes * row.useful_bytes),
    speed: row.operations / (row.kernel.median_ms / 1000),
  };
}

function rooflineFrame(points, ceilings) {
  const xs = points.map(p => p.intensity), ys = points.map(p => p.speed);
  const x = [Math.min(...xs) / 2.5, Math.max(...xs) * 6];
  const roof =
    Math.max(...ceilings.map(c => c.gb_s * 1e9 * Math.max(...xs) * 1.6), Math.max(...ys) * 1.5);
  return {x, y: [Math.min(...ys, roof / 10) / 2.5, roof]};
}

function drawRoofline(model, rows, width) {
  for (const g of model.groups)
    for (const r of g.rows) r.group = g;
  const points = rows.map(rooflinePoint);
  const ceilings = ["read", "copy", "to_device_pinned"]
                     .map(name => ceilingOf(model, rows[0], name))
                     .filter(c => c && c.gb_s);
  const frame = rooflineFrame(points, ceilings);
  const height = Math.round(Math.min(460, Math.max(320, width * 0.72)));
  const room = {x: 58, y: 10, w: width - 66, h: height - 54};
  const canvas = canvasFor(
    width, height,
    `Roofline of ${rows[0].device}: ${points.length} contenders, ${ceilings.length} ceilings`);
  const plot = {
    room,
    frame,
    x: logScale(...frame.x, room.x, room.x + room.w),
    y: logScale(...frame.y, room.y + room.h, room.y),
  };
  drawRooflineAxes(canvas, plot);
  const taken = drawCeilings(canvas, plot, ceilings);
  drawPoints(canvas, plot, points, taken);
  return canvas;
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
    svg(
      "text", {
        class: "soft small",
        x: 14,
        y: room.y + 2,
        transform: `rotate(-90 14 ${room.y + 2})`,
        "text-anchor": "end"
      },
      "operations per second"));
}

// The part of a ceiling's diagonal that is inside the frame.
function diagonal(rate, {frame, x, y}) {
  const from = Math.max(frame.x[0], frame.y[0] / rate),
        to = Math.min(frame.x[1], frame.y[1] / rate);
  return from < to ? {x1: x(from), y1: y(from * rate), x2: x(to), y2: y(to * rate)} : null;
}

// Draws the diagonals with their names along them; returns the area of the names.
function drawCeilings(canvas, plot, ceilings) {
  const taken = [], classes = {read: "", copy: "second"};
  ceilings.forEach(c => {
    const d = diagonal(c.gb_s * 1e9, plot);
    if (!d) return;
    const angle = Math.atan2(d.y2 - d.y1, d.x2 - d.x1) * 180 / Math.PI;
    const text = `${c.name === "to_device_pinned" ? "pinned bus" : c.name} ${figure(c.gb_s)} GB/s`;
    const isBelow = c.name === "copy";
    const at = {x: d.x1 + (d.x2 - d.x1) * 0.04, y: d.y1 + (d.y2 - d.y1) * 0.04};
    canvas.append(
      svg("line", {class: "ceiling " + (classes[c.name] ?? "bus"), "data-ceiling": c.name, ...d}),
      svg(
        "text", {
          class: "small soft halo",
          transform: `translate(${at.x} ${at.y}) rotate(${angle})`,
          x: 4,
          y: isBelow ? 15 : -7
        },
        text));
    const long = textWidth(text, 11) + 8, turn = angle * Math.PI / 180;
    for (let k = 0; k <= long; k += 8)
      taken.push({
        x: at.x + k * Math.cos(turn) - 8,
        y: at.y + k * Math.sin(turn) - (isBelow ? 4 : 16),
        w: 18,
        h: 20
      });
  });
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

// From the longest to the shortest text; the first one that fits is used.
function labelTexts(label) {
  const memories = label.memories.filter(Boolean), name = `${label.row.op} ${label.row.contender}`;
  const list = memories.length > 2 ? `${memories.length} memories` : memories.join(", ");
  return [list ? `${name} (${list})` : name, name, label.row.contender];
}

function drawPoints(canvas, plot, points, taken) {
  for (const p of points) {
    p.x = plot.x(p.intensity);
    p.y = plot.y(p.speed);
  }
  const shown = points.filter(p => p.isLabelled).sort((a, b) => b.speed - a.speed);
  const labels = labelsOf(shown);
  for (const p of shown) taken.push({x: p.x - 6, y: p.y - 6, w: 12, h: 12});
  const leaders = svg("g", {});
  canvas.append(leaders);
  for (const p of points) {
    const {row} = p, r = p.isLabelled ? 5.5 : 3.5;
    const look = row.peer ? {class: "outline", "stroke-width": 2} : {class: "fill"};
    markOf(
      canvas, hueOf(row.backend), rowTip(row), row.index,
      shapeAt("circle", p.x, p.y, r + 4, {class: "ring"}),
      shapeAt(shapeOf(row.backend), p.x, p.y, r, {...look, opacity: p.isLabelled ? 1 : 0.35}));
  }
  for (const l of labels) {
    const places = labelTexts(l).map(
      text => ({text, box: placeLabel(l, textWidth(text, 11) + 2, 14, plot.room, taken)}));
    const {text, box} = places.find(p => p.box) || {};
    if (!box) continue;
    taken.push(box);
    const edge = box.side > 0 ? box.x - 2 : box.x + box.w + 2;
    if (box.dy)
      leaders.append(
        svg("path", {class: "leader", d: `M${l.x} ${l.y}L${edge} ${box.y + box.h / 2}`}));
    canvas.append(nameAt(
      "small halo" + (l.row.peer ? " soft" : ""), box.side > 0 ? box.x : box.x + box.w, box.y + 11,
      text, box.side > 0 ? "start" : "end"));
  }
}
