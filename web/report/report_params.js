// SPDX-License-Identifier: MIT
//
// report_params.js: rates along an axis of an op: the values side by side, words or numbers, in the
// order of the race.
"use strict";

// Groups that differ in only one axis: {axis, groups}, for each axis with more than one value.
function sweepsOf(model) {
  const sweeps = [];
  for (const op of model.ops)
    for (const {name} of op.axes) {
      const others = g => g.axes.filter(([n]) => n !== name);
      const mine = model.groups.filter(g => g.op === op.op && g.ok.length);
      for (const groups of grouped(mine, g => [g.dtype, g.size, paramsText(others(g))].join("\n")))
        if (groups.length > 1)
          sweeps.push({axis: name, groups, others: paramsText(others(groups[0]))});
    }
  return sweeps;
}

function valueOf(row, axis) {
  return String(row.axes.find(([name]) => name === axis)?.[1] ?? "");
}

// One line per contender; of rows that differ only in memory, the best one.
function sweepSeries({axis, groups}) {
  return grouped(groups.flatMap(g => g.ok), r => deviceKey(r) + "\n" + r.contender)
    .map(
      rows => grouped(rows, r => valueOf(r, axis))
                .map(same => same.reduce((a, b) => b.kernel.gb_s > a.kernel.gb_s ? b : a)))
    .map(rows => ({rows, first: rows[0], last: rows[rows.length - 1]}));
}

function paramsSection(model) {
  const sweeps = sweepsOf(model);
  if (!sweeps.length) return null;
  return section(
    "params", "Over parameters",
    "GB/s of each contender over the values of a parameter, all else being equal.", legend(model),
    html("div", {class: "figures"}, ...sweeps.map(sweep => {
      const {op, dtype, size} = sweep.groups[0];
      return html(
        "figure", {"data-chart": "params"},
        html(
          "figcaption", {}, html("h3", {}, `${op} ${dtype} over ${sweep.axis}`),
          html("small", {}, [size, sweep.others].filter(Boolean).join(", "))),
        chart(width => drawSweep(sweep, width)));
    })));
}

function drawSweep(sweep, width) {
  const series = sweepSeries(sweep), rates = series.flatMap(s => s.rows).map(r => r.kernel.gb_s);
  const values = sweep.groups.map(g => valueOf(g.ok[0], sweep.axis));
  const y0 = Math.min(...rates) / 1.5, y1 = Math.max(...rates) * 1.4;
  const names = width < 420 ? 104 : 150, height = Math.max(320, series.length * 15 + 90);
  const room = {x: 46, y: 24, w: width - 52 - names, h: height - 68};
  const x = row =>
    room.x + room.w * (values.indexOf(valueOf(row, sweep.axis)) + 0.5) / values.length;
  const y = logScale(y0, y1, room.y + room.h, room.y);
  const canvas = canvasFor(
    width, height,
    `GB/s over ${sweep.axis} of ${series.length} contenders of ${sweep.groups[0].op}`);

  for (const tick of logTicks(y0, y1))
    canvas.append(
      lineAt("grid", room.x, y(tick), room.x + room.w, y(tick)),
      textAt("soft small", room.x - 7, y(tick) + 4, String(+tick.toPrecision(3)), "end"));
  drawValues(canvas, values, room);
  canvas.append(
    svg("path", {class: "axis", d: `M${room.x} ${room.y}V${room.y + room.h}H${room.x + room.w}`}),
    textAt("soft small", 0, 10, "GB/s"),
    textAt("soft small", room.x + room.w, room.y + room.h + 36, sweep.axis, "end"));
  drawSeries(canvas, series, x, y, room, names);
  return canvas;
}

// One grid line per value; its name if it does not touch the previous one.
function drawValues(canvas, values, room) {
  let free = -Infinity;
  values.forEach((value, k) => {
    const at = room.x + room.w * (k + 0.5) / values.length;
    const text = fitted(value, Math.max(40, room.w / values.length), 11);
    const half = textWidth(text, 11) / 2;
    canvas.append(lineAt("grid", at, room.y, at, room.y + room.h));
    if (at - half < free + 4) return;
    free = at + half;
    canvas.append(textAt("soft small", at, room.y + room.h + 16, text, "middle"));
  });
}
