"""tables: a record's figures as rows of text, for the page and for Markdown.

A table is (title, words, head, rows) with cells of plain text. The first column is text, the others are
figures.
"""
import statistics

from . import claims


def short(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def percent(value):
    return "" if value is None else f"{value:.1f} %"


def microseconds(ms):
    us = 1000.0 * ms
    return f"{us:,.0f}" if us >= 100 else f"{us:.1f}" if us >= 3 else f"{us:.2f}"


def spelled(count):
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"


def claim_table(record):
    rows = [[f"{c['op']}: {c['what']}", c["says"], ("≤ " if c["unit"].endswith("or less") else "≥ ") + f"{c['bar']:g}",
             f"{c['aim']:g}" if c["aim"] else "", c["status"]] for c in record["claims"]]
    return ("What was asked for", "Ratios are within the run: to the ceiling it measured, or to a peer that raced along.",
            ["", "measured", "asked", "aim", ""], rows)


def resident_table(record):
    bench = record["benches"].get("cuda")
    if not bench:
        return None
    named = [r for r in bench["rows"] if r["group"] == "resident" and not r["name"].startswith("read:")]
    rows = [["read ceiling (" + bench["ceiling"].removeprefix("read: ") + ")", short(bench["ceiling_gb_s"]), "100.0 %"]]
    rows += [[r["name"], short(r["gb_s"]), percent(100.0 * r["gb_s"] / bench["ceiling_gb_s"])]
             for r in sorted(named, key=lambda r: -r["gb_s"])]
    return (f"The engine, {spelled(bench['resident_bytes'])} in the card's memory",
            f"Vocabulary {bench['vocab']}, {bench['nodes']} nodes.", ["", "GB/s", "of the ceiling"], rows)


def batch_table(record):
    bench = record["benches"].get("cuda")
    if not bench:
        return None
    rows = [[r["name"], microseconds(r["median_ms"]) + " µs", short(r["gb_s"])]
            for r in bench["rows"] if r["group"] in ("batch", "replay")]
    return ("One batch of 3 MiB, every mode",
            "Reduced and applied; alone with the launch and two events around it, or as one of a replayed chain.",
            ["mode", "time", "GB/s of tokens"], rows)


def calls_table(record):
    """Batches of 16 to 256 MiB; shares as the claims compute them."""
    bench = record["benches"].get("cuda")
    rows = [[r["name"], microseconds(r["median_ms"]) + " µs"] for r in (bench or {"rows": []})["rows"] if r["group"] == "call"]
    if not rows:
        return None
    for cells in rows[1:]:
        mib, of_a_chain = int(cells[0].split()[1]), cells[0].endswith("chain")
        cells.append(percent(100.0 * (claims.call_share(mib, of_a_chain)(record) or 0)))
    rows[0].append("")
    return ("One batch of 16 to 256 MiB, cold caches",
            "Reduced and applied: a replayed graph of one call, or one of a chain of calls with other tokens each.",
            ["", "time", "empty kernel and one read, of the time"], rows)


def sizes_table(record, race, title, words, unit=microseconds):
    """One row per contender, one column per size, with medians."""
    document = record["races"].get(race)
    if not document:
        return None
    good = [r for r in document["results"] if r["status"] == "ok" and r["memory"] in ("pageable", "host")]
    sizes = list(dict.fromkeys((r["size"], r["useful_bytes"]) for r in good))
    sizes.sort(key=lambda s: s[1])
    names = list(dict.fromkeys((r["backend"], r["contender"]) for r in good))
    rows = []
    for backend, name in names:
        cells = []
        for size, _ in sizes:
            row = next((r for r in good if (r["backend"], r["contender"], r["size"]) == (backend, name, size)), None)
            cells.append(unit(claims.kernel(row)["median_ms"]) if row else "")
        rows.append([f"{name} ({backend})"] + cells)
    heads = [s if "x" in s else spelled(count) for s, count in sizes]
    return (title, words, ["µs"] + heads, rows)


def case_words(row):
    params = [f"{k} {v}" for k, v in row["params"].items() if k not in ("streams", "threads", "nodes", "vocab", "bins")]
    return ", ".join([f"{row['size']} {row['dtype']}"] + params)


def race_table(record, race, title, backend="cuda"):
    """Our fastest contender and the peers of each case."""
    document = record["races"].get(race)
    if not document:
        return None
    good = [r for r in document["results"] if r["status"] == "ok" and r["backend"] == backend]
    rows = []
    for case in dict.fromkeys(case_words(r) for r in good):
        mine = sorted((r for r in good if case_words(r) == case), key=lambda r: claims.kernel(r)["median_ms"])
        own = next((r for r in mine if not r["peer"]), None)
        if own is None:
            continue
        peers = [f"{claims.kernel(p)['median_ms'] / claims.kernel(own)['median_ms']:.2f} × {p['contender']}"
                 for p in mine if p["peer"]]
        rows.append([case, own["contender"], short(claims.kernel(own)["gb_s"]),
                     percent(claims.kernel(own)["percent_of_ceiling"]), ", ".join(peers)])
    return (title, "The fastest of ours in each case, and what it is to the peers.",
            ["case", "first", "GB/s", "of the ceiling", "over peers"], rows)


def sweep_names(document, backend):
    """("atax.cuda.single-pass", "cublas")"""
    raced = {row["peer"]: row for row in document["results"] if row["backend"] == backend}
    return f"{raced[False]['op']}.{backend}.{raced[False]['contender']}", raced[True]["contender"]


def sweep_shape(shape):
    ratio, rows, cols, dtype, ms = shape
    return f"{ratio:.2f} × at {rows}×{cols} {dtype} ({microseconds(ms)} µs)"


def sweep_table(document, backend):
    found = claims.sweep(document, backend)
    if len(found) < 2:
        return None
    own, peer = sweep_names(document, backend)
    ratios = [ratio for ratio, *_ in found]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    rows = [["least, median, greatest", f"{ratios[0]:.2f}, {middle:.2f}, {ratios[-1]:.1f}"],
            ["quartiles", f"{low:.2f}, {high:.2f}"],
            ["below 0.97, below 1", f"{sum(r < 0.97 for r in ratios)}, {sum(r < 1 for r in ratios)}"]]
    rows += [["the worst" if k == 0 else "", sweep_shape(shape)] for k, shape in enumerate(found[:5])]
    return (f"{own} over {peer}, {len(found)} random cases", "Ratios of medians of interleaved runs.", ["", "×"], rows)


def feed_table(record):
    rows = [[r["name"], short(r["gb_s"])] for r in (record["benches"].get("cuda") or {"rows": []})["rows"]
            if r["group"] == "feed"]
    for dtype, feeds in record["feeds"].items():
        for backend in ("cuda", "cpu"):
            rates = sorted(f["gb_per_s"] for f in feeds if f["backend"] == backend)
            if rates:
                rows.append([f"iron feed, a file of 2^31 {dtype} in the page cache, {backend}, median of {len(rates)} "
                             f"(best {short(rates[-1])})", short(rates[len(rates) // 2])])
    for backend in ("cuda", "cpu"):
        rates = [s["gb_per_s"] for s, k in zip(record["sums"], ("cuda", "cpu") * len(record["sums"])) if k == backend]
        if rates:
            rows.append([f"iron sum of such a file of u32, {backend}, better of {len(rates)}", short(max(rates))])
    return ("From the host", "Set-up (device, kernels, page-locked slots) is not in these; the feed's `setup_seconds` in record.json tells it.", ["", "GB/s"], rows) if rows else None


def cpu_table(record):
    bench = record["benches"].get("tokens")
    if not bench:
        return None
    rows = [[r["name"] + (f", vocabulary {r['vocab']}" if r["vocab"] else ""), short(r["gb_s"]),
             percent(100.0 * r["of_ceiling"])] for r in bench["rows"]
            if r["name"].startswith("tokens.cpu.champion") or "ceiling" in r["name"]]
    return (f"The CPU beside it, {bench['threads']} threads", record["machine"]["cpu"],
            ["", "GB/s", "of its ceiling"], rows)


def profile_table(record):
    rows = []
    for p in record["profiles"]:
        moved = (p["bytes_read"] or 0) + (p["bytes_written"] or 0)
        waits = ", ".join(f"{name} {share:.0f} %" for name, share in list(p["waits"].items())[:3])
        rows.append([f"{p['name']} ({p['kernel']})", f"{p['time_us']:.1f}" if p["time_us"] is not None else "", spelled(int(p["useful_bytes"])) if p["useful_bytes"] else "", spelled(int(moved)),
                     percent(p["memory_percent"]), percent(p["compute_percent"]), percent(p["occupancy_percent"]),
                     short(p["registers"]), waits])
    return ("By the hardware counters",
            "One launch each under Nsight Compute, caches emptied before it; percent of what the units could do. The last "
            "column is what warps waited for, by the share of their cycles.",
            ["", "µs", "must move", "moved", "memory", "compute", "occupancy", "registers", "waits"], rows) if rows else None


def checks_table(record):
    rows = [[f"selftest, {t['name']}", f"{t['passed']} passed, {t['failed']} failed, {t['skipped']} skipped"]
            for t in record["selftests"]]
    rows += [[f"compute-sanitizer {s['name']}", s["says"].strip("; ").replace(";", "; ") or "nothing said"]
             for s in record["sanitizers"]]
    return ("Checks", "", ["", ""], rows) if rows else None


def step_table(record):
    rows = [[s["title"], f"{s['seconds']} s", s["command"]] for s in record["steps"]]
    return ("What ran", "", ["step", "took", "command"], rows) if rows else None


TECHNIQUES = ("histogram", "histogram-u32", "histogram-u16", "histogram-large",
              *(f"histogram-{bins}" for bins, *_ in claims.LARGE_VOCABULARIES), "transpose",
              *(f"transpose-{dtype}" for dtype in ("u8", "u16", "f32", "f64")), "layout", "fusion", "adaptive", "divergence",
              "barrier", "banks", "gather", "occupancy", "residency")


def all_tables(record):
    found = [claim_table(record), resident_table(record), batch_table(record), calls_table(record),
             sizes_table(record, "tokens", "Batches of any length, one call each",
                         "Kernel scope, caches as the arena leaves them between turns."),
             feed_table(record), race_table(record, "seal", "The seal"),
             race_table(record, "seal", "The seal through OpenCL", "opencl"),
             sizes_table(record, "atax-f32", "ATAX, f32", "A is read once by single-pass, graph and one-launch."),
             sizes_table(record, "atax-f64", "ATAX, f64", "Rows of 20000 do not fit a group's registers."),
             sizes_table(record, "atax-shapes-f32", "ATAX at other shapes, f32", "Long, thin, odd and unaligned rows."),
             sizes_table(record, "atax-shapes-f64", "ATAX at other shapes, f64", ""),
             sizes_table(record, "atax-opencl", "ATAX through OpenCL, f32", "The same kernel.")]
    found += [sweep_table(record["races"].get(f"sweep-{backend}", {}), backend) for backend in ("cuda", "cpu")]
    found += [race_table(record, name, name) for name in TECHNIQUES]
    found += [cpu_table(record), profile_table(record), checks_table(record), step_table(record)]
    return [t for t in found if t and t[3]]
