// SPDX-License-Identifier: MIT
//
// report_lines.js: rates by size, and the distribution of single samples around the median.
"use strict";

// One line per contender; of rows that differ only in memory, the best one, since the kernel is the
// same.
function seriesOf(groups) {
  const all = groups.flatMap(g => g.ok);
  return grouped(all, r => deviceKey(r) + "\n" + r.contender)
    .map(rows => ({
           rows: grouped(rows, r => r.size)
                   .map(same => same.reduce((a, b) => b.kernel.gb_s > a.kernel.gb_s ? b : a))
                   .sort((a, b) => a.useful_bytes - b.useful_bytes),
         }))
    .map(s => ({...s, first: s.rows[0], last: s.rows[s.rows.length - 1]}));
}

function scalingSection(model) {
  const ops = grouped(model.groups.filter(g => g.ok.length), g => g.title)
                .filter(groups => new Set(groups.map(g => g.size)).size > 1);
  if (!ops.length) return null;
  return section(
    "sizes", "Over sizes",
    "GB/s over the useful bytes. Left of a dashed line the data fit into that device's cache:" +
      " rates above the memory's come from the cache, and low rates from the time that a " +
      "launch takes.",
    legend(model),
    html(
      "div", {class: "figures"},
      ...ops.map(
        groups => html(
          "figure", {"data-chart": "scaling"},
          html(
            "figcaption", {}, html("h3", {}, groups[0].title),
            html("small", {}, `${groups.length} sizes`)),
          chart(width => drawScaling(model, groups, width))))));
}

function drawScaling(model, groups, width) {
  const series = seriesOf(groups), rows = series.flatMap(s => s.rows);
  const caches = grouped(rows, deviceKey)
                   .map(r => ({row: r[0], bytes: cacheOf(model, r[0])}))
                   .filter(c => c.bytes);
  const sizes = rows.map(r => r.useful_bytes), rates = rows.map(r => r.kernel.gb_s);
  const x0 = Math.min(...sizes) / 1.6, x1 = Math.max(...sizes) * 1.15;
  const y0 = Math.min(...rates) / 1.5, y1 = Math.max(...rates) * 1.4;
  const names = width < 420 ? 104 : 150, height = Math.max(360, series.length * 15 + 90);
  const inside = caches.filter(c => c.bytes > x0 && c.bytes < x1);
  const head = 24 + 14 * new Set(inside.map(c => c.bytes)).size;
  const room = {x: 46, y: head, w: width - 52 - names, h: height - head - 44};
  const x = logScale(x0, x1, room.x, room.x + room.w),
        y = logScale(y0, y1, room.y + room.h, room.y);
  const canvas =
    canvasFor(width, height, `GB/s over bytes of ${series.length} contenders of ${groups[0].op}`);

  for (const tick of logTicks(y0, y1))
    canvas.append(
      lineAt("grid", room.x, y(tick), room.x + room.w, y(tick)),
      textAt("soft small", room.x - 7, y(tick) + 4, String(+tick.toPrecision(3)), "end"));
  let free = -Infinity;
  for (const bytes of [...new Set(sizes)].sort((a, b) => a - b)) {
    const text = bytesText(bytes), half = textWidth(text, 11) / 2;
    canvas.append(lineAt("grid", x(bytes), room.y, x(bytes), room.y + room.h));
    if (x(bytes) - half < free + 6) continue;
    free = x(bytes) + half;
    canvas.append(textAt("soft small", x(bytes), room.y + room.h + 16, text, "middle"));
  }
  canvas.append(
    svg("path", {class: "axis", d: `M${room.x} ${room.y}V${room.y + room.h}H${room.x + room.w}`}),
    textAt("soft small", 0, 10, "GB/s"),
    textAt("soft small", room.x + room.w, room.y + room.h + 36, "useful bytes", "end"));
  drawCaches(canvas, inside, x, room);
  drawSeries(canvas, series, r => x(r.useful_bytes), y, room, names);
  return canvas;
}

// Devices with equal cache sizes share a line, which extends to its name above the plot.
function drawCaches(canvas, caches, x, room) {
  grouped(caches, c => c.bytes).forEach((same, k) => {
    const at = x(same[0].bytes), text = `${same.map(c => c.row.backend).join(", ")} cache`;
    const top = 24 + k * 14;
    canvas.append(
      lineAt(
        "ceiling second", at, top - 8, at, room.y + room.h, {"data-cache": same[0].row.backend}),
      textAt("soft small", at + 5, top, text));
  });
}

// x: of a row.
function drawSeries(canvas, series, x, y, room, names) {
  for (const s of series) {
    const path =
      s.rows.map((r, k) => `${k ? "L" : "M"}${x(r).toFixed(1)} ${y(r.kernel.gb_s).toFixed(1)}`)
        .join("");
    canvas.append(svg("g", {class: hueOf(s.first.backend)}, svg("path", {
                        class: "stroke series",
                        d: path,
                        "stroke-width": 1.75,
                        "stroke-dasharray": s.first.peer ? "5 3" : null
                      })));
  }
  for (const s of series)
    for (const r of s.rows)
      markOf(
        canvas, hueOf(r.backend), rowTip(r), r.index,
        shapeAt("circle", x(r), y(r.kernel.gb_s), 8, {class: "ring"}),
        shapeAt(
          shapeOf(r.backend), x(r), y(r.kernel.gb_s), 3.8,
          {class: r.peer ? "outline halo" : "fill"}));
  const labels = series.map(s => ({s, x: x(s.last), y: y(s.last.kernel.gb_s)}));
  for (const l of spread(labels, 14, room.y, room.y + room.h)) {
    const edge = room.x + room.w + 10;
    canvas.append(
      svg("path", {class: "leader", d: `M${l.x + 6} ${l.y}L${edge - 2} ${l.at}`}),
      nameAt(
        "small", edge + 1, l.at + 4,
        fitted(`${l.s.first.backend} ${l.s.first.contender}`, names - 6, 11)));
  }
}

function samplesSection(model) {
  const groups = model.groups.filter(g => g.ok.some(r => r.kernel.samples.length));
  if (!groups.length) return null;
  return section(
    "samples", "Samples",
    "Every timing of the kernel, in percent off the row's own median; the box holds the " +
      "middle half, the thick line the median's interval (95 % coverage or more; fewer than six " +
      "samples have none). Arrows at the edge stand for samples further out.",
    legend(model),
    ...foldedGroups(
      groups, g => `${g.ok.reduce((n, r) => n + r.kernel.samples.length, 0)} samples`,
      g => [html(
        "div", {class: "panel", "data-chart": "samples"},
        chart(width => drawSamples(g.ok.filter(r => r.kernel.samples.length), width)))]));
}

function quantile(sorted, share) {
  const at = (sorted.length - 1) * share, low = Math.floor(at);
  return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (at - low);
}

function samplesOf(row) {
  const off = ms => (ms / row.kernel.median_ms - 1) * 100;
  const values = row.kernel.samples.map(off), sorted = [...values].sort((a, b) => a - b);
  return {
    row,
    values,
    q1: quantile(sorted, 0.25),
    q3: quantile(sorted, 0.75),
    interval: row.kernel.low_ms ? [off(row.kernel.low_ms), off(row.kernel.high_ms)] : null
  };
}

function drawSamples(rows, width) {
  const strips = rows.map(samplesOf), all = strips.flatMap(s => s.values).sort((a, b) => a - b);
  const from = Math.min(-0.5, quantile(all, 0.01) * 1.2),
        to = Math.max(0.5, quantile(all, 0.985) * 1.2);
  const isNarrow = width < 600, step = isNarrow ? 38 : 24;
  const left = isNarrow ?
    6 :
    Math.min(width * 0.34, Math.max(...rows.map(r => textWidth(`${r.backend} ${r.label}`))) + 16);
  const bottom = rows.length * step + 4;
  const x = linearScale(from, to, left, width - 14);
  const canvas =
    canvasFor(width, bottom + 24, `Samples of ${rows.length} contenders around their medians`);
  const grain = linearTicks(Math.max(to, -from), isNarrow ? 2 : 4),
        ticks = [...grain, ...grain.slice(1).map(t => -t)];

  for (const tick of ticks.filter(t => t >= from && t <= to))
    canvas.append(
      lineAt(tick ? "grid" : "axis", x(tick), 0, x(tick), bottom),
      textAt("soft small", x(tick), bottom + 16, offText(tick), "middle"));
  strips.forEach(
    (s, k) =>
      drawStrip(canvas, s, x, k * step + (isNarrow ? 26 : 14), {from, to, left, isNarrow, width}));
  return canvas;
}

function offText(tick) {
  return tick ? `${tick > 0 ? "+" : "−"}${Number(Math.abs(tick).toPrecision(2))} %` : "median";
}

// A sample, or an arrow at the edge for one outside the plot.
function drawDot(value, k, x, y, from, to) {
  if (value > to) return svg("path", {class: "fill sample", d: `M${x(to)} ${y - 4}l7 4l-7 4Z`});
  if (value < from) return svg("path", {class: "fill sample", d: `M${x(from)} ${y - 4}l-7 4l7 4Z`});
  const look = {class: "fill sample", opacity: 0.55};
  return shapeAt("circle", x(value).toFixed(1), y + (k % 5 - 2) * 1.6, 2, look);
}

function samplesTip(row) {
  const k = row.kernel;
  return [
    [row.name + (row.memoryLabel ? " · " + row.memoryLabel : "")],
    ["median", figure(k.median_ms, "ms")],
    k.low_ms ?
      [
        `${percent(k.coverage_percent)} interval`, `${figure(k.low_ms)} to ${figure(k.high_ms)} ms`
      ] :
      ["interval", "none: fewer than six samples"],
    ["range", `${figure(k.min_ms)} to ${figure(k.max_ms)} ms`],
    ["95 of 100 within", figure(k.p95_ms, "ms")],
    ["noise", percent(k.noise_percent)],
    ["samples", samplesText(k)],
  ];
}

function drawStrip(canvas, strip, x, y, {from, to, left, isNarrow, width}) {
  const {row, q1, q3, interval} = strip;
  const at = value => x(Math.min(to, Math.max(from, value)));
  const name = fitted(`${row.backend} ${row.label}`, isNarrow ? width : left - 10, 11);
  canvas.append(nameAt("small", 0, isNarrow ? y - 12 : y + 4, name));
  markOf(
    canvas, hueOf(row.backend), samplesTip(row), row.index,
    interval ? boxAt("hatch-back", at(q1), y - 7, Math.max(1, at(q3) - at(q1)), 14, {rx: 2}) : null,
    ...strip.values.map((v, k) => drawDot(v, k, x, y, from, to)),
    interval ?
      lineAt("stroke", at(interval[0]), y + 8, at(interval[1]), y + 8, {"stroke-width": 3}) :
      lineAt(
        "stroke", at(Math.min(...strip.values)), y, at(Math.max(...strip.values)), y,
        {"stroke-width": 1}),
    boxAt("ring", x(from), y - 10, x(to) - x(from), 21, {rx: 3}));
}
