// SPDX-License-Identifier: MIT
//
// report_compare.js: the comparison with an earlier race: how much longer or shorter each row's
// median takes, with the intervals by which that was judged; and the rows that broke, are new or
// are gone.
"use strict";

const CHANGES = ["slower", "broken", "faster", "unclear", "same", "new", "gone"];

function changeCounts(rows) {
  return CHANGES.map(change => [change, rows.filter(r => r.change === change).length])
    .filter(([, count]) => count)
    .map(([change, count]) => `${count} ${change}`)
    .join(", ");
}

function comparisonSection(model, comparison) {
  if (!comparison) return null;
  // New rows that were skipped are among those that were not raced.
  const rows =
    comparison.rows.filter(r => !(r.change === "new" && model.rows[r.row]?.status === "skipped"));
  const isTimed = r => r.row !== null && r.old && r.new;
  const timed = rows.filter(isTimed).map(r => ({...r, of: model.rows[r.row]}));
  const others = rows.filter(r => !isTimed(r));
  const scale = comparisonScale(timed, comparison.threshold_percent / 100);
  const cases =
    model.groups.map(group => ({group, rows: timed.filter(r => group.rows.includes(r.of))}))
      .filter(c => c.rows.length);
  return section(
    "comparison", "Before and after",
    `Against ${comparison.path}: ${changeCounts(rows) || "nothing to compare"}. ` +
      "The hollow circle is the earlier median, the filled mark the one of this race; bars are the " +
      "intervals by which they were compared. A row is slower or faster if its median moved by more " +
      `than ${comparison.threshold_percent} % (shaded) and the intervals do not overlap.`,
    ...cases.map(
      ({group, rows}) => html(
        "details", {
          class: "group",
          open: rows.some(r => r.change !== "same") || cases.length === 1 ? "" : null
        },
        summary(html("b", {}, group.title), sizeText(group), changeCounts(rows)),
        html(
          "div", {class: "panel", "data-chart": "comparison"},
          chart(width => drawComparison(rows, scale, width))))),
    others.length ? otherChanges(model, others) : null);
}

function otherChanges(model, rows) {
  return html(
    "dl", {class: "skipped"},
    ...grouped(rows, r => r.change)
      .flatMap(
        same =>
          [html("dt", {}, same[0].change),
           html(
             "dd", {},
             html(
               "ul", {},
               ...same.map(
                 r => html(
                   "li", {}, html("code", {}, nameOfChange(model, r)),
                   r.scope ? `, ${r.scope}` : "",
                   r.reason ? html("span", {class: "reason"}, `: ${r.reason}`) : ""))))]));
}

function nameOfChange(model, {row, key}) {
  if (row === null) return key;
  const {name, memoryLabel, size, dtype, axesText} = model.rows[row];
  return [`${name} ${memoryLabel}`.trim(), size, dtype, axesText].filter(Boolean).join(", ");
}

// One scale for all cases: ratios of times, symmetric around 1, wide enough for all medians.
function comparisonScale(rows, threshold) {
  const ratios = rows.map(r => r.new.median_ms / r.old.median_ms);
  const most = Math.max(1.05, (1 + threshold) * 1.5, ...ratios.map(r => Math.max(r, 1 / r) * 1.1));
  return {threshold, from: 1 / most, to: most};
}

function changeText(ratio) {
  const change = 100 * (ratio - 1);
  return `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(1)} %`;
}

// Ratios with round percentages, few enough to have room; 1, which needs its name most, is the
// first.
function ratioTicks({from, to}) {
  const near = to < 1.3 ? [0.8, 0.9, 0.95, 1.05, 1.1, 1.25] : [0.8, 1.25];
  return [1, ...near, 0.01, 0.1, 0.2, 0.5, 1.5, 2, 5, 10, 100].filter(r => r >= from && r <= to);
}

function drawComparison(rows, scale, width) {
  const named = rows.map(
    r => ({...r.of, label: r.of.label + (r.scope === "kernel" ? "" : ", end to end"), rank: 0}));
  const layout = barLayout(named, width, 260);
  const step = layout.row + (layout.isNarrow ? 16 : 0), bottom = rows.length * step;
  const canvas =
    canvasFor(width, bottom + 24, `Times of ${rows.length} rows against an earlier race`);
  const x = logScale(scale.from, scale.to, layout.left + 6, width - layout.right - 6);
  const tops = rows.map((row, k) => k * step + (layout.isNarrow ? 36 : 5));
  const reaches = layout.isNarrow ? tops.map(top => [top - 4, layout.bar + 8]) : [[0, bottom]];
  const taken = [];

  for (const [y, high] of reaches)
    canvas.append(boxAt(
      "band", x(1 / (1 + scale.threshold)), y,
      x(1 + scale.threshold) - x(1 / (1 + scale.threshold)), high));
  for (const tick of ratioTicks(scale)) {
    const text =
      tick === 1 ? "before" : `${tick < 1 ? "−" : "+"}${Math.round(Math.abs(tick - 1) * 100)} %`;
    const half = textWidth(text, 11) / 2 + 4;
    canvas.append(...reaches.map(
      ([y, high]) => lineAt(tick === 1 ? "axis" : "grid", x(tick), y, x(tick), y + high)));
    if (taken.some(t => x(tick) - half < t.to && t.from < x(tick) + half)) continue;
    taken.push({from: x(tick) - half, to: x(tick) + half});
    canvas.append(textAt("soft small", x(tick), bottom + 16, text, "middle"));
  }
  rows.forEach((row, k) => {
    drawBarName(
      canvas, named[k], layout.isNarrow ? width : layout.left,
      layout.isNarrow ? tops[k] - 22 : tops[k] + 12);
    drawChange(canvas, row, x, scale, tops[k] + layout.bar / 2);
    drawChangeFigures(canvas, row, layout.isNarrow, tops[k], width);
  });
  return canvas;
}

function drawChange(canvas, row, x, scale, y) {
  const ratioOf = ms => Math.min(scale.to, Math.max(scale.from, ms / row.old.median_ms));
  const at = ms => x(ratioOf(ms)), now = at(row.new.median_ms), then = at(row.old.median_ms);
  const bar = (look, span, dy) => lineAt(
    look, at(span.low_ms), y + dy, Math.max(at(span.high_ms), at(span.low_ms) + 1), y + dy,
    {"stroke-width": 3});
  markOf(
    canvas, hueOf(row.of.backend), changeTip(row), row.row, bar("before", row.old, 4),
    bar("stroke", row.new, -4), lineAt("leader", then, y, now, y),
    shapeAt("circle", then, y, 3.5, {class: "cold"}),
    shapeAt(shapeOf(row.of.backend), now, y, 4.5, {class: "fill"}),
    boxAt("ring", Math.min(now, then) - 9, y - 9, Math.abs(now - then) + 18, 18, {rx: 3}));
}

function changeTip(row) {
  const span = s => `${figure(s.low_ms)} to ${figure(s.high_ms, "ms")}, ${s.count} samples`;
  const ratio = row.new.median_ms / row.old.median_ms;
  return [
    [`${row.of.name} ${row.of.memoryLabel}`.trim()],
    ["change", `${changeText(ratio)}, ${row.change}`], ["before", figure(row.old.median_ms, "ms")],
    ["interval before", span(row.old)], ["after", figure(row.new.median_ms, "ms")],
    ["interval after", span(row.new)]
  ];
}

function drawChangeFigures(canvas, row, isNarrow, top, width) {
  const times = `${figure(row.old.median_ms)} → ${figure(row.new.median_ms)} ms`;
  const change = changeText(row.new.median_ms / row.old.median_ms);
  const look = row.change === "slower" || row.change === "faster" ? "strong " + row.change : "soft";
  if (isNarrow) {
    canvas.append(nameAt("small " + look, 26, top - 8, `${times}, ${change}, ${row.change}`));
    return;
  }
  canvas.append(
    nameAt("soft", width - 124, top + 12, times, "end"),
    nameAt(look, width - 60, top + 12, change, "end"),
    nameAt(look, width, top + 12, row.change, "end"));
}
