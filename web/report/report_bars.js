// SPDX-License-Identifier: MIT
//
// report_bars.js: two bar charts: the ranking (GB/s next to the ceiling), and the phases of a GPU's
// rows (prepare, transfer, kernel, and end to end).
//
// Each device has its own scale: next to a GPU, the bars of a CPU would be tiny. To compare
// devices, use the figures after the bars.
"use strict";

function rankingSection(model) {
  const groups = model.groups.filter(g => g.ok.length);
  if (!groups.length) return null;
  const has = what => groups.some(g => g.ok.some(what));
  return section(
    "ranking", "Ranking",
    "GB/s of useful bytes, best first; the number is the place among all devices. The line is" +
      " the device's measured memory bandwidth.",
    legend(
      model, [boxAt("ink", 8, 0, 2, 14), "measured ceiling", has(r => r.ceiling)],
      [stripesIcon(), "peer: another library", has(r => r.peer)],
      [shapeAt("diamond", 9, 7, 3.5, {class: "cold"}), "with cold caches", has(r => r.kernel.cold)],
      [
        boxAt("outline cached", 2, 3, 14, 8), "data fit into the cache", has(r => r.cache_resident)
      ]),
    ...groups.map(g => {
      const best = g.ok[0];
      return foldedGroup(
        g,
        `${bytesText(g.bytes)}; best: ${best.backend}.${best.label}, ${
          figure(best.kernel.gb_s)} GB/s`,
        ...g.byDevice.map(
          rows => html(
            "div", {class: "panel", "data-chart": "ranking"},
            html("h4", {}, `${rows[0].backend} · ${rows[0].device}`),
            chart(width => drawRanking(rows, barLayout(g.ok, width, 132), width)))));
    }));
}

function stripesIcon() {
  return svg(
    "g", {}, boxAt("hatch-back", 1, 3, 16, 8),
    svg("path", {class: "stroke", d: "M2 11L8 3M7 11L13 3M12 11L17 4", "stroke-width": 2}));
}

// Names next to the bars, or above them if there is no room; the same for all devices of a group.
function barLayout(rows, width, tailWidth) {
  const widest =
    Math.max(...rows.map(r => textWidth(barName(r), 12, r.rank === 1 ? 600 : 400))) + 40;
  const isNarrow = width < 600;
  return {
    isNarrow,
    left: isNarrow ? 0 : Math.min(widest, width * 0.4),
    right: tailWidth,
    row: isNarrow ? 40 : 26,
    bar: isNarrow ? 14 : 16,
  };
}

function barName(row) {
  return row.label + (row.isBaseline ? " · baseline" : "");
}

function drawBarName(canvas, row, layout, y, width) {
  const room = (layout.isNarrow ? width : layout.left) - 34;
  canvas.append(
    textAt("faint small", 18, y, row.rank ? String(row.rank) : "", "end"),
    nameAt(row.rank === 1 ? "strong" : "", 26, y, fitted(barName(row), room)));
}

function drawRanking(rows, layout, width) {
  const ceiling = rows.find(r => r.ceiling)?.ceiling;
  const most =
    Math.max(ceiling || 0, ...rows.map(r => Math.max(r.kernel.gb_s, r.kernel.cold?.gb_s || 0)));
  const height = rows.length * layout.row + 26;
  const canvas = canvasFor(width, height, `GB/s of ${rows.length} contenders on ${rows[0].device}`);
  const x = linearScale(0, most * 1.02, layout.left, width - layout.right);
  const stripes = hatch(canvas, hueOf(rows[0].backend));
  const bottom = rows.length * layout.row;

  for (const tick of linearTicks(most, layout.isNarrow ? 3 : 6))
    canvas.append(
      lineAt("grid", x(tick), 0, x(tick), bottom),
      textAt("soft small", x(tick), bottom + 16, figureOfTick(tick), tick ? "middle" : "start"));
  rows.forEach((row, k) => {
    const top = k * layout.row + (layout.isNarrow ? 20 : 5);
    drawBarName(canvas, row, layout, layout.isNarrow ? top - 5 : top + 12, width);
    drawRankingBar(
      canvas, row, {x, top, height: layout.bar, stripes, end: width - layout.right, width});
  });
  if (ceiling) {
    const nearEdge = x(ceiling) > width - layout.right - 40;
    canvas.append(
      lineAt("ceiling", x(ceiling), 0, x(ceiling), bottom + 4, {"data-ceiling": "own"}),
      textAt(
        "small soft halo", x(ceiling) + (nearEdge ? 4 : 0), bottom + 16,
        `ceiling ${figure(ceiling)}`, nearEdge ? "start" : "middle"));
  }
  return canvas;
}

function figureOfTick(tick) {
  return tick === 0 ? "0 GB/s" : String(+tick.toPrecision(4));
}

function drawRankingBar(canvas, row, {x, top, height, stripes, width}) {
  const start = x(0), rate = row.kernel.gb_s, cold = row.kernel.cold;
  const box = {x: start, y: top, width: Math.max(1.5, x(rate) - start), height, rx: 2};
  const share = row.kernel.percent_of_ceiling;
  markOf(
    canvas, hueOf(row.backend), rowTip(row), row.index,
    row.peer ? svg("rect", {...box, fill: stripes}) :
               svg("rect", {...box, class: "fill", opacity: row.isBaseline ? 0.45 : 1}),
    row.cache_resident ? svg("rect", {...box, class: "outline cached"}) : null,
    row.isBaseline && !row.cache_resident ? svg("rect", {...box, class: "outline"}) : null,
    cold && cold.gb_s ? shapeAt("diamond", x(cold.gb_s), top + height / 2, 3.5, {class: "cold"}) :
                        null,
    svg(
      "rect",
      {...box, x: start - 2, y: top - 2, width: box.width + 4, height: height + 4, class: "ring"}));
  canvas.append(
    nameAt("strong", width - 62, top + 12, figure(rate), "end"),
    nameAt("soft", width, top + 12, percent(share), "end"));
}

const PARTS = [["transfer", "transfer"], ["kernel", "fill"], ["prepare", "prepare"]];

function scopesSection(model) {
  const groups = model.groups
                   .map(g => ({
                          ...g,
                          panels: g.byDevice.map(rows => rows.filter(r => r.scopes.end_to_end))
                                    .filter(rows => rows.length)
                        }))
                   .filter(g => g.panels.length);
  if (!groups.length) return null;
  const box = {x: 1, y: 3, width: 16, height: 8};
  return section(
    "scopes", "Where the time goes",
    "Rows on GPUs by memory strategy, in milliseconds. The filled bar adds up what was timed " +
      "alone: transfer, kernel, and preparation, which is paid once. " +
      "The outlined bar is end to end, from data in host memory to the result in host memory:" +
      " where it is shorter than transfer and kernel together, they overlap.",
    html(
      "ul", {class: "legend"},
      ...[
        ["transfer", "transfer"], ["fill", "kernel"], ["prepare", "prepare, once"],
        ["whole", "end to end"]]
        .map(
          ([name, text]) => html(
            "li", {class: "b-cuda"},
            svg(
              "svg", {viewBox: "0 0 18 14", "aria-hidden": "true"},
              svg("rect", {...box, class: name})),
            text))),
    ...groups.map(
      g => foldedGroup(
        g, bytesText(g.bytes),
        ...g.panels.map(
          rows => html(
            "div", {class: "panel", "data-chart": "scopes"},
            html("h4", {}, `${rows[0].backend} · ${rows[0].device}`),
            chart(width => drawScopes(rows, barLayout(g.panels.flat(), width, 76), width)))))));
}

function drawScopes(rows, names, width) {
  const sorted =
    [...rows].sort((a, b) => a.scopes.end_to_end.median_ms - b.scopes.end_to_end.median_ms);
  const layout = {...names, row: names.row + 10};
  const sum = r => PARTS.reduce((total, [name]) => total + (r.scopes[name]?.median_ms || 0), 0);
  const most = Math.max(...sorted.map(r => Math.max(sum(r), r.scopes.end_to_end.median_ms)));
  const bottom = sorted.length * layout.row;
  const canvas = canvasFor(
    width, bottom + 24, `Milliseconds of ${rows.length} contenders on ${rows[0].device}, by scope`);
  const x = linearScale(0, most, layout.left, width - layout.right);

  for (const tick of linearTicks(most, layout.isNarrow ? 3 : 6))
    canvas.append(
      lineAt("grid", x(tick), 0, x(tick), bottom),
      textAt(
        "soft small", x(tick), bottom + 16, tick ? String(+tick.toPrecision(4)) : "0 ms",
        tick ? "middle" : "start"));
  sorted.forEach((row, k) => {
    const top = k * layout.row + (layout.isNarrow ? 20 : 6);
    drawBarName(
      canvas, {...row, rank: 0, isBaseline: false}, layout, layout.isNarrow ? top - 5 : top + 15,
      width);
    drawScopesBar(canvas, row, x, top);
    canvas.append(
      nameAt("strong", width, top + 16, figure(row.scopes.end_to_end.median_ms, "ms"), "end"));
  });
  return canvas;
}

function drawScopesBar(canvas, row, x, top) {
  let at = 0;
  const parts = [], tip = [[row.name + " · " + row.memory]];
  for (const [name, look] of PARTS) {
    const scope = row.scopes[name];
    if (!scope) continue;
    parts.push(boxAt(
      look, x(at), top, Math.max(0.75, x(at + scope.median_ms) - x(at)), 12, {"data-scope": name}));
    at += scope.median_ms;
    tip.push([name, figure(scope.median_ms, "ms")]);
  }
  const whole = row.scopes.end_to_end.median_ms;
  tip.push(
    ["end to end", figure(whole, "ms")],
    ["useful bytes", figure(row.scopes.end_to_end.gb_s, "GB/s")]);
  markOf(
    canvas, hueOf(row.backend), tip, row.index, ...parts,
    boxAt("whole", x(0), top + 15, Math.max(1, x(whole) - x(0)), 6, {"data-scope": "end_to_end"}),
    boxAt("ring", x(0) - 3, top - 3, Math.max(x(at), x(whole)) - x(0) + 6, 27, {rx: 3}));
}
