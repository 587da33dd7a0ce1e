// SPDX-License-Identifier: MIT
//
// report_rows.js: all rows in one table, which can be filtered and sorted. The rows of a case,
// which race each other, stay together below their title; cases are in the order of the ranking.
// Where the table does not fit, it scrolls beside the names, and shadows show on which sides there
// is more.
"use strict";

const COLUMNS = [
  {
    title: "#",
    kind: "n",
    isNaming: true,
    value: r => r.rank,
    text: r => r.rank ? String(r.rank) : ""
  },
  {
    title: "contender",
    kind: "who",
    isNaming: true,
    value: r => r.name,
    text: r =>
      [html("span", {class: hueOf(r.backend)}, html("i", {class: "swatch"})),
       `${r.backend}.${r.contender}`, r.peer ? html("span", {class: "tag"}, "peer") : "",
       r.isOk && isAboveCeiling(r) ? html("span", {class: "tag"}, "above the ceiling") : "",
       r.cache_resident && r.isOk ? html("span", {class: "tag"}, "in the cache") : "",
       r.isOk ? "" :
                html("span", {class: "tag " + r.status}, r.status === "wrong" ? "WRONG" : r.status),
       r.isOk && r.idea ? html("small", {}, r.idea) : ""]
  },
  {
    title: "memory",
    isNaming: true,
    isOptional: true,
    value: r => r.memoryLabel,
    text: r => r.memoryLabel
  },
  {
    title: "kernel ms",
    kind: "n",
    value: r => r.kernel?.median_ms,
    text: r => figure(r.kernel?.median_ms)
  },
  {title: "GB/s", kind: "n", value: r => r.kernel?.gb_s, text: r => figure(r.kernel?.gb_s)},
  {
    title: "of ceiling",
    kind: "n",
    value: r => r.kernel?.percent_of_ceiling,
    text: r => percent(r.kernel?.percent_of_ceiling)
  },
  {
    title: "cold GB/s",
    kind: "n",
    value: r => r.kernel?.cold?.gb_s,
    text: r => figure(r.kernel?.cold?.gb_s)
  },
  {
    title: "end to end",
    kind: "n",
    isOptional: true,
    value: r => r.scopes.end_to_end?.median_ms,
    text: r => figure(r.scopes.end_to_end?.median_ms)
  },
  {title: "speedup", kind: "n", value: r => r.speedup, text: r => times(r.speedup)},
  {
    title: "noise",
    kind: "n",
    value: r => r.kernel?.noise_percent,
    text: r => percent(r.kernel?.noise_percent)
  },
  {
    title: "samples",
    kind: "n",
    value: r => r.kernel?.samples.length,
    text: r => String(r.kernel?.samples.length ?? "")
  },
  ...[["regs", "registers"], ["local B", "local_bytes"], ["spill B", "spill_bytes"]].map(
    ([title, key]) => ({
      title,
      kind: "n",
      isOptional: true,
      value: r => r.mainKernel?.[key],
      text: r => String(r.mainKernel?.[key] ?? "")
    })),
  {
    title: "occupancy",
    kind: "n",
    isOptional: true,
    value: r => r.mainKernel?.occupancy_percent,
    text: r =>
      r.mainKernel?.occupancy_percent ? Math.round(r.mainKernel.occupancy_percent) + " %" : ""
  },
  {
    title: "GB/s per W",
    kind: "n",
    isOptional: true,
    value: r => r.energy ? 1 / r.energy.joules_per_gb : null,
    text: r => r.energy ? figure(1 / r.energy.joules_per_gb) : ""
  },
];

function isValue(x) {
  return x !== null && x !== undefined && x !== "";
}

// Rows without a figure stay last in both sort directions.
function compareBy(column, direction) {
  return (a, b) => {
    const x = column.value(a), y = column.value(b);
    const hasX = isValue(x), hasY = isValue(y);
    if (!hasX || !hasY) return Number(hasY) - Number(hasX);
    return direction * (typeof x === "number" ? x - y : String(x).localeCompare(String(y)));
  };
}

function matches(row, text, status, op) {
  const all = `${row.name} ${row.memory} ${row.size} ${row.sizeName} ${row.dtype} ${row.axesText} ${
                row.device} ${row.status} ${row.reason} ${row.idea}`
                .toLowerCase();
  return (!status || row.status === status) && (!op || row.op === op) &&
    text.toLowerCase().split(/\s+/).every(word => all.includes(word));
}

// In a row without figures, the reason spans their columns.
function rowLine(row, columns) {
  const told = row.isOk ? columns : columns.filter(c => c.isNaming);
  const cells = told.map(c => html("td", {class: c.kind || null}, c.text(row)));
  if (!row.isOk)
    cells.push(html("td", {class: "reason", colspan: columns.length - told.length}, row.reason));
  return html("tr", {class: row.status, "data-row": row.index}, ...cells);
}

function choice(id, label, values) {
  return html(
    "label",
    {for: id
    },
    label,
    html(
      "select", {id}, html("option", {value: ""}, "all"),
      ...values.map(v => html("option", {value: v}, v))));
}

function caseLine(group, columns) {
  return html(
    "tr", {class: "case"},
    html(
      "th", {scope: "rowgroup", colspan: columns.length},
      html("span", {}, group.title, html("small", {}, [
             sizeText(group), bytesText(group.bytes), paramsText(group.facts)
           ].filter(Boolean).join(", ")))));
}

// Where the table is wider than its place: which of its sides are cut off.
function showCutSides() {
  for (const box of document.querySelectorAll(".scroll")) {
    const hidden = box.scrollWidth - box.clientWidth;
    box.parentElement.classList.toggle("is-cut-left", box.scrollLeft > 1);
    box.parentElement.classList.toggle("is-cut-right", box.scrollLeft < hidden - 1);
  }
}

// A table in a box that scrolls if there is no room.
function scrolling(label, table) {
  const box =
    html("div", {class: "scroll", role: "region", "aria-label": label, tabindex: 0}, table);
  box.addEventListener("scroll", showCutSides, {passive: true});
  return html(
    "div", {class: "wide"},
    html("p", {class: "more", "aria-hidden": "true"}, "more columns: scroll sideways →"), box);
}

function rowsSection(model) {
  const table = html("table", {id: "all-rows"}), count = html("output", {"aria-live": "polite"});
  const search = html(
    "input", {id: "search", type: "search", placeholder: "cuda pinned …", autocomplete: "off"});
  const status = choice("status", "Status", [...new Set(model.rows.map(r => r.status))]);
  const op = choice("op", "Op", [...new Set(model.rows.map(r => r.op))]);
  const filters = html("div", {class: "filters", role: "search"}, html("label", {for: "search"
                       }, "Find", search), status, op, count);
  // Columns without any value are omitted.
  const columns = COLUMNS.filter(c => !c.isOptional || model.rows.some(r => isValue(c.value(r))));
  const cases = grouped(model.groups, g => g.title)
                  .flatMap(same => [...same].sort((a, b) => b.bytes - a.bytes));
  let sorted = null;  // {column, direction}

  const fill = () => {
    const bodies = cases.map(group => {
      const shown = group.rows.filter(
        r => matches(r, search.value.trim(), status.lastChild.value, op.lastChild.value));
      if (sorted) shown.sort(compareBy(sorted.column, sorted.direction));
      return {group, shown};
    });
    const total = bodies.reduce((sum, b) => sum + b.shown.length, 0);
    table.replaceChildren(
      table.tHead,
      ...bodies.filter(b => b.shown.length)
        .map(
          ({group, shown}) =>
            html("tbody", {}, caseLine(group, columns), ...shown.map(r => rowLine(r, columns)))));
    count.textContent =
      total === model.rows.length ? `${total} rows` : `${total} of ${model.rows.length} rows`;
    showCutSides();
  };
  const heads = columns.map(column => {
    const head = html(
      "th",
      {scope: "col", class: column.kind || null, "aria-sort": "none", "data-title": column.title},
      html("button", {type: "button"}, column.title));
    head.firstChild.addEventListener("click", () => {
      sorted = {column, direction: sorted?.column === column ? -sorted.direction : 1};
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", sorted.direction > 0 ? "ascending" : "descending");
      fill();
    });
    return head;
  });
  table.append(html("thead", {}, html("tr", {}, ...heads)));
  filters.addEventListener("input", fill);
  fill();
  return section(
    "rows", "All rows",
    "Every row of the race, case by case. Click a column title to sort the rows of each case.",
    filters, scrolling("Table of all rows", table));
}
