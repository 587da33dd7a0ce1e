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
      " the device's measured memory bandwidth, the band around it what its samples gave.",
    legend(
      model, [boxAt("ink", 8, 0, 2, 14), "measured ceiling", has(r => r.ceiling)],
      [whisker(2, 16, 7), "where the median lies, with 95 % or more", has(r => spreadOf(r).isSure)],
      [
        shapeAt("circle", 9, 7, 2.5, {class: "dot"}), "single samples, fewer than six",
        has(r => !spreadOf(r).isSure)
      ],
      [shapeAt("diamond", 9, 7, 3.5, {class: "cold"}), "with cold caches", has(r => r.kernel.cold)],
      [stripesIcon(), "peer: another library", has(r => r.peer)],
      [
        boxAt("outline cached", 2, 3, 14, 8), "data fit into the cache", has(r => r.cache_resident)
      ]),
    ...foldedGroups(
      groups,
      ({bytes, ok: [best]}) => `${bytesText(bytes)}; best: ${best.backend}.${best.label}, ${
        figure(best.kernel.gb_s)} GB/s`,
      g => g.byDevice.map(
        rows => html(
          "div", {class: "panel", "data-chart": "ranking"},
          html("h3", {}, `${rows[0].backend} · ${rows[0].device}`),
          chart(width => drawRanking(model, rows, barLayout(g.ok, width, TAIL), width))))));
}

// The figures after a ranking's bars: where each column ends, from the right.
const TAIL = 184, TAIL_COLUMNS = [["GB/s", 116], ["of ceiling", 54], ["samples", 0]];

// Where the rate of a row's median lies: its interval, or with fewer than six samples, for which
// there is none, all of them.
function spreadOf(row) {
  const k = row.kernel, rateOf = ms => k.gb_s * k.median_ms / ms;
  const isSure = k.samples.length >= 6 && k.low_ms > 0;
  const rates = (isSure ? [k.low_ms, k.high_ms] : k.samples).filter(ms => ms > 0).map(rateOf);
  return {isSure, rates, low: Math.min(...rates), high: Math.max(...rates)};
}

function whisker(x1, x2, y) {
  const d = `M${x1} ${y - 3}v6m0 -3H${x2}m0 -3v6`;
  return svg(
    "g", {"data-spread": "interval"}, svg("path", {class: "whisker-back", d}),
    svg("path", {class: "whisker", d}));
}

function spreadMark(spread, x, y) {
  if (spread.isSure) return whisker(x(spread.low), x(spread.high), y);
  return svg(
    "g", {"data-spread": "samples"},
    ...spread.rates.map(rate => shapeAt("circle", x(rate), y, 2.5, {class: "dot"})));
}

// What a ceiling's own samples gave: [least, greatest] GB/s.
function ceilingBand(ceiling) {
  const rates =
    ceiling.samples.filter(ms => ms > 0).map(ms => ceiling.gb_s * ceiling.median_ms / ms);
  return rates.length ? [Math.min(...rates), Math.max(...rates)] : [ceiling.gb_s, ceiling.gb_s];
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
    right: isNarrow ? 8 : tailWidth,
    tail: tailWidth,
    row: isNarrow ? 40 : 26,
    bar: isNarrow ? 14 : 16,
  };
}

function barName(row) {
  return row.label + (row.isBaseline ? " · baseline" : "");
}

function drawBarName(canvas, row, room, y) {
  canvas.append(
    textAt("faint small", 18, y, row.rank ? String(row.rank) : "", "end"),
    nameAt(row.rank === 1 ? "strong" : "", 26, y, fitted(barName(row), room - 34)));
}

function drawRanking(model, rows, names, width) {
  // On a narrow page a row's figures have a line of their own between its name and its bar.
  const layout = {...names, row: names.row + (names.isNarrow ? 16 : 0)};
  const own = rows.find(r => r.ceiling), ceiling = own && ceilingNear(model, own);
  const band = ceiling ? ceilingBand(ceiling) : own ? [own.ceiling, own.ceiling] : [0, 0];
  const most = Math.max(
    band[1], ...rows.map(r => Math.max(r.kernel.gb_s, spreadOf(r).high, r.kernel.cold?.gb_s || 0)));
  const head = layout.isNarrow ? 0 : 18, bottom = head + rows.length * layout.row;
  const canvas =
    canvasFor(width, bottom + 26, `GB/s of ${rows.length} contenders on ${rows[0].device}`);
  const x = linearScale(0, most * 1.02, layout.left, width - layout.right);
  const tops = rows.map((row, k) => head + k * layout.row + (layout.isNarrow ? 36 : 5));
  // Vertical lines do not cross the texts above the bars.
  const reaches =
    layout.isNarrow ? tops.map(top => [top - 4, layout.bar + 8]) : [[head, bottom - head]];
  const stripes = hatch(canvas, hueOf(rows[0].backend));
  const taken = [];

  if (own) {
    const text = `ceiling ${figure(own.ceiling)}`, half = textWidth(text, 11) / 2 + 2;
    const at = Math.min(Math.max(x(own.ceiling), half), width - half);
    taken.push(at - half - 4, at + half + 4);
    canvas.append(
      ...reaches.map(
        ([y, high]) => boxAt("band", x(band[0]), y, Math.max(1, x(band[1]) - x(band[0])), high)),
      textAt("small soft", at, bottom + 16, text, "middle"));
  }
  for (const tick of linearTicks(most, layout.isNarrow ? 3 : 6)) {
    const text = figureOfTick(tick), room = textWidth(text, 11) / (tick ? 2 : 1);
    canvas.append(...reaches.map(([y, high]) => lineAt("grid", x(tick), y, x(tick), y + high)));
    if (!taken.length || x(tick) + room < taken[0] || x(tick) - (tick ? room : 0) > taken[1])
      canvas.append(textAt("soft small", x(tick), bottom + 16, text, tick ? "middle" : "start"));
  }
  if (!layout.isNarrow)
    canvas.append(
      ...TAIL_COLUMNS.map(([title, end]) => textAt("soft small", width - end, 10, title, "end")));
  rows.forEach((row, k) => {
    drawBarName(
      canvas, row, layout.isNarrow ? width : layout.left,
      layout.isNarrow ? tops[k] - 22 : tops[k] + 12);
    drawRankingBar(canvas, row, {x, top: tops[k], height: layout.bar, stripes});
    drawRankingFigures(canvas, row, layout.isNarrow, tops[k], width);
  });
  if (own)
    canvas.append(svg(
      "g", {"data-ceiling": "own"},
      ...reaches.map(
        ([y, high]) => lineAt("ceiling", x(own.ceiling), y, x(own.ceiling), y + high))));
  return canvas;
}

function drawRankingFigures(canvas, row, isNarrow, top, width) {
  const {gb_s, percent_of_ceiling, samples} = row.kernel, count = samples.length;
  const told = [figure(gb_s), percent(percent_of_ceiling), String(count)];
  if (isNarrow)
    canvas.append(nameAt("small soft", 26, top - 8, [
      told[0] + " GB/s", told[1] && told[1] + " of the ceiling",
      count === 1 ? "1 sample" : told[2] + " samples"
    ].filter(Boolean).join(", ")));
  else
    TAIL_COLUMNS.forEach(([, end], k) => {
      canvas.append(nameAt(k === 0 ? "strong" : "soft", width - end, top + 12, told[k], "end"));
    });
}

function figureOfTick(tick) {
  return tick === 0 ? "0 GB/s" : String(+tick.toPrecision(4));
}

function drawRankingBar(canvas, row, {x, top, height, stripes}) {
  const start = x(0), rate = row.kernel.gb_s, cold = row.kernel.cold;
  const box = {x: start, y: top, width: Math.max(1.5, x(rate) - start), height, rx: 2};
  markOf(
    canvas, hueOf(row.backend), rowTip(row), row.index,
    row.peer ? svg("rect", {...box, fill: stripes}) :
               svg("rect", {...box, class: "fill", opacity: row.isBaseline ? 0.45 : 1}),
    row.cache_resident ? svg("rect", {...box, class: "outline cached"}) : null,
    row.isBaseline && !row.cache_resident ? svg("rect", {...box, class: "outline"}) : null,
    spreadMark(spreadOf(row), x, top + height / 2 - 2),
    cold && cold.gb_s ? shapeAt("diamond", x(cold.gb_s), top + height - 1, 3.5, {class: "cold"}) :
                        null,
    svg(
      "rect",
      {...box, x: start - 2, y: top - 2, width: box.width + 4, height: height + 4, class: "ring"}));
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
    ...foldedGroups(
      groups, g => bytesText(g.bytes),
      g => g.panels.map(
        rows => html(
          "div", {class: "panel", "data-chart": "scopes"},
          html("h3", {}, `${rows[0].backend} · ${rows[0].device}`),
          chart(width => drawScopes(rows, barLayout(g.panels.flat(), width, 76), width))))));
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
      canvas, {...row, rank: 0, isBaseline: false},
      layout.isNarrow ? width - layout.tail : layout.left, layout.isNarrow ? top - 5 : top + 15);
    drawScopesBar(canvas, row, x, top);
    canvas.append(nameAt(
      "strong", width, layout.isNarrow ? top - 5 : top + 16,
      figure(row.scopes.end_to_end.median_ms, "ms"), "end"));
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
