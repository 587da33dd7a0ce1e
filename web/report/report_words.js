// SPDX-License-Identifier: MIT
//
// report_words.js: the text parts: the headline, the best of each op, warnings, the machine. The
// explanations are in report.html.
"use strict";

function counted(model, status) {
  return model.rows.filter(r => r.status === status);
}

function headline(model) {
  const share = row => row.kernel.percent_of_ceiling || 0;
  const top = rows => rows.reduce((a, b) => share(b) > share(a) ? b : a);
  const best = model.groups.filter(g => g.isLargest && g.ok.length)
                 .map(g => {
                   const sound = g.ok.filter(r => !isAboveCeiling(r));
                   return top(sound.length ? sound : g.ok);
                 })
                 .filter(share);
  if (!model.rows.length) return "Nothing was raced";
  if (!best.length) return "The race, without a ceiling to compare with";
  // Data in the cache do not measure memory, and a row above the ceiling shows that the ceiling was
  // measured too low: neither is a share of anything.
  const fromMemory = best.filter(r => !r.cache_resident);
  const sound = fromMemory.filter(r => !isAboveCeiling(r));
  if (sound.length)
    return `${top(sound).op} reaches ${
      top(sound).kernel.percent_of_ceiling.toFixed(
        0)} % of what the memory of ${shortDevice(top(sound).device)} gives`;
  if (fromMemory.length)
    return `${top(fromMemory).op} is above the ceiling of ${
      shortDevice(top(fromMemory).device)}, which was measured too low`;
  return `${top(best).op} runs at ${
    figure(
      top(best).kernel.gb_s)} GB/s with its data in the cache of ${shortDevice(top(best).device)}`;
}

function shortDevice(name) {
  return name.length > 40 ? name.slice(0, 38) + "…" : name;
}

function subline(model) {
  const n = status => counted(model, status).length;
  const others = ["wrong", "implausible", "failed", "skipped"].filter(n).map(s => `${n(s)} ${s}`);
  return `${n("ok")} contenders raced and verified${
           others.length ? ", " + others.join(", ") : ""}, in ${model.host.seconds.toFixed(1)} s` +
    ` on ${model.host.name || "this machine"}, ${
           model.host.date.replace("T", " ").replace("Z", " UTC")}.`;
}

function alarm(rows, title, kind) {
  if (!rows.length) return null;
  const same = grouped(rows, r => r.name + r.memory + r.reason);
  return html(
    "div", {class: "alarm " + kind, role: "alert"}, html("h2", {}, title),
    html(
      "ul", {},
      ...same.map(
        list => html(
          "li", {}, html("code", {}, list[0].name), ` ${list[0].memoryLabel} `,
          `(${list.map(r => [r.size, r.axesText].filter(Boolean).join(", ")).join("; ")}): `,
          html("span", {class: "reason"}, list[0].reason)))));
}

function shareText(row) {
  const share = `${percent(row.kernel.percent_of_ceiling)} of the ceiling`;
  if (row.cache_resident) return `${share}; the data fit into the cache`;
  return isAboveCeiling(row) ? `${share}, which was measured too low` : share;
}

function bestCard(group) {
  const best = group.ok[0], peer = group.ok.find(r => r.peer && deviceKey(r) === deviceKey(best));
  const share = best.kernel.percent_of_ceiling;
  const more = [
    best.speedup && !best.isBaseline ? `${times(best.speedup)} as fast as ${best.baseline}` : "",
    peer && peer !== best ?
      `${times(peer.kernel.median_ms / best.kernel.median_ms)} as fast as ${peer.contender}` :
      ""
  ].filter(Boolean);
  return html(
    "div", {class: "card " + hueOf(best.backend)},
    html(
      "p", {class: "what"},
      [group.title, group.size, bytesText(group.bytes), paramsText(group.facts)]
        .filter(Boolean)
        .join(" · ")),
    html("p", {class: "figure"}, figure(best.kernel.gb_s), " ", html("small", {}, "GB/s")),
    share ? html(
              "div", {class: "meter", "aria-hidden": "true"},
              html("i", {style: `width:${Math.min(100, share)}%`})) :
            null,
    share ? html("p", {class: "share"}, shareText(best)) : null,
    html(
      "p", {class: "who"}, html("strong", {}, `${best.backend}.${best.contender}`),
      best.memoryLabel ? " " + best.memoryLabel : ""),
    html("p", {class: "more"}, [shortDevice(best.device), ...more].join("; ")));
}

// One card per case; for an op with many cases the first few, the others are in the ranking.
const CARDS_EACH = 8;

function overviewSection(model) {
  const shown = grouped(model.groups.filter(g => g.isLargest && g.ok.length), g => g.op + g.dtype)
                  .flatMap(same => same.slice(0, CARDS_EACH));
  const wrong = counted(model, "wrong"), failed = counted(model, "failed");
  const tooFast = counted(model, "implausible");
  const heading = html("h2", {class: "skip", id: "overview-title"}, "At a glance");
  const element = html(
    "section", {id: "overview", "aria-labelledby": heading.id}, heading,
    alarm(wrong, wrong.length === 1 ? "A wrong result" : `${wrong.length} wrong results`, "wrong"),
    alarm(
      tooFast, tooFast.length === 1 ? "An implausible row" : `${tooFast.length} implausible rows`,
      "wrong"),
    alarm(
      failed, failed.length === 1 ? "A row that failed" : `${failed.length} rows that failed`,
      "failed"),
    html("div", {class: "cards"}, ...shown.map(bestCard)));
  element.style.marginTop = "1rem";
  return element;
}

// What was left out and why, in full: each reason once, with the rows that it holds for; devices;
// and what the plan of the race remarked.
function skippedSection(model) {
  const casesOf = op => model.groups.filter(g => g.op === op).length;
  const where = rows => rows.length === casesOf(rows[0].op) ?
    "" :
    ` (${rows.map(r => [r.size, r.dtype, r.axesText].filter(Boolean).join(", ")).join("; ")})`;
  const reasons = grouped(counted(model, "skipped"), r => r.reason)
                    .map(rows => [rows[0].reason, grouped(rows, r => r.name + r.memory)]);
  const isTold = (text, list) => list.some(other => text.endsWith(other));
  const remarks = (model.host.remarks || []).filter(text => !isTold(text, reasons.map(r => r[0])));
  const devices = model.devices.filter(
    d => !d.available && !isTold(d.reason, reasons.map(r => r[0])) &&
      !remarks.some(text => text.endsWith(d.reason)));
  if (!reasons.length && !devices.length && !remarks.length) return null;
  return section(
    "skipped", "Not raced", "What was left out, and why; no size or type means all of the race.",
    html(
      "dl", {class: "skipped"}, ...remarks.map(text => html("dt", {}, text)),
      ...devices.map(
        d => html("dt", {}, `${d.backend} ${d.index}, ${d.name}: `, html("span", {}, d.reason))),
      ...reasons.flatMap(
        ([reason, names]) =>
          [html("dt", {}, reason),
           html(
             "dd", {},
             html(
               "ul", {},
               ...names.map(
                 rows => html(
                   "li", {}, html("code", {}, rows[0].name),
                   ` ${rows[0].memoryLabel}${where(rows)}`))))])));
}

function facts(pairs) {
  return html(
    "dl", {class: "facts"},
    ...pairs.filter(([, value]) => value)
      .flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));
}

function clockText(device) {
  const c = device.clocks;
  if (!c.max_mhz) return "";
  return (c.min_mhz && c.min_mhz !== c.max_mhz ? `${c.min_mhz} to ` : "") + `${c.max_mhz} MHz` +
    (c.memory_mhz ? `, memory ${c.memory_mhz}` : "") +
    (device.celsius ? `, up to ${device.celsius} °C` : "");
}

function plainTable(label, titles, lines) {
  return scrolling(
    label,
    html(
      "table", {},
      html(
        "thead", {},
        html(
          "tr", {},
          ...titles.map(
            t => html(
              "th", {scope: "col", class: "plain" + (t.startsWith("#") ? " n" : "")},
              t.replace("#", ""))))),
      html(
        "tbody", {},
        ...lines.map(
          line => html(
            "tr", {},
            ...line.map(
              (cell, k) => html(
                "td", {
                  class: titles[k].startsWith("#") ? "n" :
                    k === line.length - 1          ? "reason" :
                    k === 1                        ? "device" :
                                                     null
                },
                cell)))))));
}

// The user's own tokens; "" for generated data.
function dataText(data) {
  if (!data) return "";
  const part = data.tokens < data.file_tokens ? `the first ${data.tokens} of ` : "";
  return `${data.file}: ${part}${data.file_tokens} tokens, ${data.dtype}`;
}

function machineSection(model) {
  const h = model.host;
  const devices = model.devices.map(
    d =>
      [html(
         "span", {class: hueOf(d.backend)}, html("i", {class: "swatch"}),
         `${d.backend} ${d.index}`),
       d.name, d.driver, d.units ? String(d.units) : "",
       d.memory_bytes ? bytesText(d.memory_bytes) : "",
       d.cache_bytes ? bytesText(d.cache_bytes) : "", clockText(d),
       d.available ? d.throttle || "" : "not raced: " + d.reason]);
  const ceilings = model.ceilings.map(
    c =>
      [html("span", {class: hueOf(c.backend)}, html("i", {class: "swatch"}), c.backend),
       shortDevice(c.device), c.name, `${figure(c.low_gb_s)} to ${figure(c.gb_s)}`,
       figure(c.peak_gb_s), figure(c.median_ms), percent(c.noise_percent), String(c.samples.length),
       c.shape]);
  return section(
    "machine", "Machine", "", facts([
      ["Host", h.name],
      ["Processor", `${h.cpu}, ${h.threads} threads${h.features ? ", " + h.features : ""}`],
      ["Memory", `${bytesText(h.memory_bytes)}, caches ${bytesText(h.cache_bytes)}`],
      ["System", h.kernel], ["Compiler", [h.compiler, h.flags].filter(Boolean).join(", ")],
      ["iron", [model.version, h.commit].filter(Boolean).join(", commit ")], ["Date", h.date],
      ["Data", dataText(model.data)], ["Left out", (h.remarks || []).join("; ")],
      ["Again with", h.command ? html("code", {}, h.command) : ""]
    ]),
    html("h3", {}, "Devices"),
    plainTable(
      "Devices",
      ["backend", "name", "driver", "#units", "#memory", "#cache", "clocks seen", "remarks"],
      devices),
    ceilings.length ? html("h3", {}, "Ceilings") : null,
    ceilings.length ? plainTable(
                        "Ceilings",
                        [
                          "backend", "device", "ceiling", "#GB/s", "#datasheet", "#ms", "#noise",
                          "#samples", "the fastest way"
                        ],
                        ceilings) :
                      null);
}
