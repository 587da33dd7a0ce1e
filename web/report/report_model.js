// SPDX-License-Identifier: MIT
//
// report_model.js: prepares the document for the charts: rows with names and parameters, groups of
// rows that race each other, devices with their ceilings; and formats figures.
"use strict";

const KNOWN_BACKENDS = ["cpu", "cuda", "opencl"];
const SHAPES = {
  cpu: "circle",
  cuda: "square",
  opencl: "triangle"
};

function hueOf(backend) {
  return KNOWN_BACKENDS.includes(backend) ? "b-" + backend : "b-other";
}

function shapeOf(backend) {
  return SHAPES[backend] || "diamond";
}

// Parameters of the measurement; the others describe the data.
const HOW_PARAMS = ["nodes", "streams", "threads", "size_name"];

// [name, value] of the axes of the row's op and of the other parameters of its case.
function caseParams(row, axisNames) {
  const all = Object.entries(row.params).filter(([name]) => !HOW_PARAMS.includes(name));
  return {
    axes: all.filter(([name]) => axisNames.includes(name)),
    facts: all.filter(([name]) => !axisNames.includes(name)),
  };
}

function paramsText(params) {
  return params.map(pair => pair.join(" ")).join(", ");
}

// The main kernel of a row: the one with the most threads, the first of equals; a preparing kernel
// only if there is no other.
function mainKernel(row) {
  const all = k => k.groups * k.threads, kernels = row.kernels || [];
  const own = kernels.filter(k => !k.prepare);
  return (own.length ? own : kernels).reduce((a, b) => !a || all(b) > all(a) ? b : a, null);
}

function readRow(row, index, axisNames) {
  const {axes, facts} = caseParams(row, axisNames);
  const kernel = row.scopes.kernel || null;
  const memory = row.memory === "host" ? "" : row.memory;
  return {
    ...row,
    index,
    kernel,
    axes,
    facts,
    axesText: paramsText(axes),
    mainKernel: mainKernel(row),
    name: `${row.op}.${row.backend}.${row.contender}`,
    memoryLabel: memory,
    label: row.contender + (memory ? " " + memory : ""),
    sizeName: row.params.size_name || "",
    isOk: row.status === "ok" && kernel !== null,
    isBaseline: row.contender === row.baseline,
    ceiling: kernel && kernel.percent_of_ceiling ? kernel.gb_s * 100 / kernel.percent_of_ceiling :
                                                   null,
  };
}

// Groups the items by `key`, in order of appearance.
function grouped(list, key) {
  const groups = new Map();
  for (const item of list) {
    const k = key(item);
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push(item);
  }
  return [...groups.values()];
}

function readGroup(rows) {
  const {op, size, sizeName, dtype, axes, axesText, facts} = rows[0];
  return {
    op,
    size,
    sizeName,
    dtype,
    axes,
    axesText,
    facts,
    title: `${op} ${dtype}` + (axesText ? ", " + axesText : ""),
    rows,
    bytes: rows[0].useful_bytes,
    isLargest: false,  // of its op, type and parameters
    isFront: false,    // the first of these of its op and type
    ok: rows.filter(r => r.isOk),
    byDevice: grouped(rows.filter(r => r.isOk), deviceKey),
  };
}

function deviceKey(thing) {
  return thing.backend + "\n" + thing.device;
}

function largest(groups) {
  return groups.reduce((a, b) => b.bytes > a.bytes ? b : a);
}

function readModel(data, ops) {
  const axisNames = op => (ops.find(o => o.op === op)?.axes || []).map(a => a.name);
  const rows = data.results.map((row, index) => readRow(row, index, axisNames(row.op)));
  const groups =
    grouped(rows, r => [r.op, r.size, r.dtype, paramsText(r.axes), paramsText(r.facts)].join("\n"))
      .map(readGroup);
  for (const same of grouped(groups, g => [g.op, g.dtype, g.axesText].join("\n")))
    largest(same).isLargest = true;
  for (const same of grouped(groups, g => [g.op, g.dtype].join("\n"))) largest(same).isFront = true;
  return {
    ops,
    host: data.host,
    data: data.data,
    version: data.iron,
    devices: data.devices,
    ceilings: data.ceilings,
    rows,
    groups,
    raced: grouped(rows.filter(r => r.isOk), deviceKey),
  };
}

function ceilingOf(model, row, name) {
  return model.ceilings.find(c => deviceKey(c) === deviceKey(row) && c.name === name);
}

// A ceiling is what memory can do: a row above it, unless its data fit into the cache, shows that
// it was measured too low. Two percent are noise.
function isAboveCeiling(row) {
  return !row.cache_resident && row.kernel.percent_of_ceiling > 102;
}

// The ceiling that a row's share refers to: the nearest of its device, since shares are rounded.
function ceilingNear(model, row) {
  return model.ceilings.filter(c => c.gb_s && deviceKey(c) === deviceKey(row))
    .reduce((a, b) => a && near(a) <= near(b) ? a : b, null);
  function near(c) {
    return Math.abs(Math.log(c.gb_s / row.ceiling));
  }
}

function cacheOf(model, row) {
  const device = model.devices.find(d => d.backend === row.backend && d.name === row.device);
  return device ? device.cache_bytes : 0;
}

// Four significant digits and no exponent.
function figure(value, unit) {
  if (value === null || value === undefined || !isFinite(value)) return "";
  const size = Math.abs(value);
  const decimals = size === 0 ? 0 : Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(size))));
  return value.toFixed(decimals) + (unit ? " " + unit : "");
}

function percent(value) {
  return value === null || value === undefined ? "" : value.toFixed(1) + " %";
}

function times(value) {
  return value ? value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0) + "×" : "";
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    unit++;
  }
  return `${bytes < 10 && unit > 0 ? +bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

// 4.1e12 is "4.1 T": with a unit after it, "4.1 Tops/s".
function metric(value) {
  const units = ["", "k", "M", "G", "T", "P"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < 5) {
    value /= 1000;
    unit++;
  }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

function samplesText(scope) {
  return `${scope.samples.length}${scope.stopped_by ? ", until " + scope.stopped_by : ""}${
    scope.dropped ? `, ${scope.dropped} dropped (throttled)` : ""}`;
}

// The device resources that a kernel uses, as far as the driver reports them.
function kernelTip(k) {
  const known = value => value !== undefined;
  return [
    ["main kernel", k.name],
    ["launched", `${k.groups} × ${k.threads} threads`],
    ["registers", known(k.registers) ? String(k.registers) : ""],
    ["local memory", known(k.local_bytes) ? bytesText(k.local_bytes) : ""],
    ["spilled", known(k.spill_bytes) ? bytesText(k.spill_bytes) : ""],
    ["occupancy", known(k.occupancy_percent) ? percent(k.occupancy_percent) : ""],
  ];
}

// What the row took, and the clocks meanwhile.
function energyTip({energy: e, clocks: c}) {
  const all = [
    e ? `${figure(e.joules_per_gb)} J per GB, ${figure(e.watts)} W (${e.source})` : "",
    c ? [c.core_mhz && `${c.core_mhz} MHz`, c.celsius && `${c.celsius} °C`, c.reasons]
          .filter(Boolean)
          .join(", ") :
        ""
  ];
  return [["energy", all[0]], ["clocks", all[1]]];
}

// The text of a mark when it is hovered or focused.
function rowTip(row) {
  const k = row.kernel, spread = spreadOf(row);
  const tip = [
    [row.name + (row.memoryLabel ? " · " + row.memoryLabel : "")],
    ["size", `${row.size} ${row.dtype}`],
    ...[...row.axes, ...row.facts].map(([name, value]) => [name, String(value)]),
    ["kernel", figure(k.median_ms, "ms")],
    ["rate", figure(k.gb_s, "GB/s")],
    ["of the ceiling", percent(k.percent_of_ceiling)],
    ["with cold caches", k.cold ? figure(k.cold.gb_s, "GB/s") : ""],
    ["over " + row.baseline, times(row.speedup)],
    [
      spread.isSure ? "median within" : "samples within",
      `${figure(spread.low)} to ${figure(spread.high, "GB/s")}`
    ],
    ["noise", percent(k.noise_percent)],
    ["samples", samplesText(k)],
  ];
  if (row.cache_resident) tip.push(["data fit", "into the cache"]);
  if (row.mainKernel) tip.push(...kernelTip(row.mainKernel));
  tip.push(...energyTip(row));
  return tip.filter(line => line.length === 1 || line[1]);
}
