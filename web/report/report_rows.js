// SPDX-License-Identifier: MIT
//
// report_rows.js: all rows in one table, which can be filtered and sorted; initially in the order
// of the document.
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
    title: "status",
    isNaming: true,
    value: r => r.status,
    text: r => html("span", {class: "tag " + r.status}, r.status === "wrong" ? "WRONG" : r.status)
  },
  {title: "op", isNaming: true, value: r => r.op, text: r => r.op},
  {
    title: "contender",
    isNaming: true,
    value: r => r.name,
    text: r =>
      [html("span", {class: hueOf(r.backend)}, html("i", {class: "swatch"})),
       `${r.backend}.${r.contender}`,
       r.peer ? html("span", {class: "tag", style: "margin-left:.4rem"}, "peer") : ""]
  },
  {title: "memory", isNaming: true, value: r => r.memory, text: r => r.memory},
  {title: "size", kind: "n", isNaming: true, value: r => r.useful_bytes, text: r => r.size},
  {title: "type", isNaming: true, value: r => r.dtype, text: r => r.dtype},
  {
    title: "parameters",
    isNaming: true,
    isOptional: true,
    value: r => r.axesText,
    text: r => r.axesText
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
    title: "idea, or reason",
    value: r => r.reason || r.idea,
    text: r => (r.reason || r.idea) + (r.cache_resident && r.isOk ? " (data in the cache)" : ""),
    kind: "idea"
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

function rowsSection(model) {
  const body = html("tbody"), count = html("output", {"aria-live": "polite"});
  const search = html(
    "input", {id: "search", type: "search", placeholder: "cuda pinned …", autocomplete: "off"});
  const status = choice("status", "Status", [...new Set(model.rows.map(r => r.status))]);
  const op = choice("op", "Op", [...new Set(model.rows.map(r => r.op))]);
  const filters = html("div", {class: "filters", role: "search"}, html("label", {for: "search"
                       }, "Find", search), status, op, count);
  // Columns without any value are omitted.
  const columns = COLUMNS.filter(c => !c.isOptional || model.rows.some(r => isValue(c.value(r))));
  let sorted = null;  // {column, direction}

  const fill = () => {
    const shown = model.rows.filter(
      r => matches(r, search.value.trim(), status.lastChild.value, op.lastChild.value));
    if (sorted) shown.sort(compareBy(sorted.column, sorted.direction));
    body.replaceChildren(...shown.map(r => rowLine(r, columns)));
    count.textContent = shown.length === model.rows.length ?
      `${shown.length} rows` :
      `${shown.length} of ${model.rows.length} rows`;
  };
  const heads = columns.map(column => {
    const head = html(
      "th", {scope: "col", class: column.kind || null, "aria-sort": "none"},
      html("button", {type: "button"}, column.title));
    head.firstChild.addEventListener("click", () => {
      sorted = {column, direction: sorted?.column === column ? -sorted.direction : 1};
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", sorted.direction > 0 ? "ascending" : "descending");
      fill();
    });
    return head;
  });
  filters.addEventListener("input", fill);
  fill();
  return section(
    "rows", "All rows",
    "Every row of the race, including skipped ones with the reason. Click a column title to sort.",
    filters,
    html(
      "div", {class: "scroll", role: "region", "aria-label": "All rows", tabindex: 0},
      html("table", {id: "all-rows"}, html("thead", {}, html("tr", {}, ...heads)), body)));
}
