"""pictures: draws a record as SVG, legible on light and dark pages.

There are four kinds: the share of its limit that each op reaches, the time of a batch by its length, the
speedup over cuBLAS from reading a matrix only once, by its size, and the speedup over a library at random shapes.
"""
import html
import math

from . import claims, tables

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px; fill: #57606a } .title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d0d7de } .limit { stroke: #cf222e; stroke-dasharray: 4 3 } .own { fill: #0969da } .line0 { stroke: #0969da }
.line1 { stroke: #8250df } .line2 { stroke: #bc4c00 } .line3 { stroke: #1a7f37 } .mark { stroke: #bc4c00; stroke-width: 2 }
.dot0 { fill: #0969da } .dot1 { fill: #8250df } .dot2 { fill: #bc4c00 } .dot3 { fill: #1a7f37 }
polyline { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d } .own { fill: #4493f8 } .line0 { stroke: #4493f8 }
.limit { stroke: #f85149 } .line1 { stroke: #ab7df8 } .line2 { stroke: #db6d28 } .line3 { stroke: #3fb950 } .mark { stroke: #db6d28 }
.dot0 { fill: #4493f8 } .dot1 { fill: #ab7df8 } .dot2 { fill: #db6d28 } .dot3 { fill: #3fb950 } }
</style>"""


def svg(width, height, label, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{html.escape(label)}">\n{STYLE}\n' + "\n".join(parts) + "\n</svg>\n")


def text(x, y, words, kind="", anchor="start"):
    name = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{name} text-anchor="{anchor}">{html.escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def raced(record, label, race, contender, **wanted):
    """(label, share of the limit, [(peer, share)]) of one case of a race."""
    found = claims.rows(record, race, contender, **wanted)
    if not found:
        return None
    row, top = found[0], claims.kernel(found[0])
    peers = [(p["contender"], claims.kernel(p)["percent_of_ceiling"]) for p in record["races"][race]["results"]
             if p["peer"] and p["status"] == "ok" and p["size"] == row["size"] and p["params"] == row["params"]
             and p["contender"] in ("cub", "cublas")]
    return (label, top["percent_of_ceiling"], peers)


def benched(record, label, name, limit, peers=()):
    rate = claims.bench_rate(record, name)
    if not rate or not limit:
        return None
    known = [(words, claims.bench_rate(record, row)) for words, row in peers]
    return (label, 100.0 * rate / limit, [(words, 100.0 * r / limit) for words, r in known if r])


def limit_rows(record):
    ceiling = (record["benches"].get("cuda") or {}).get("ceiling_gb_s")
    copies = claims.bench_rate(record, "bare copies, page-locked")
    fed = [(f"feed: a page-cached file, {d}, of PCIe's copies", 100.0 * claims.feed_rate(record, d) / copies, [])
           for d in ("u32", "u16") if copies and claims.feed_rate(record, d)]

    def either(label, race, before, **wanted):
        """Of a race that had another name or champion in older records."""
        return raced(record, label, *race, **wanted) or raced(record, label, *before, **wanted)

    rows = [
        benched(record, "tokens: 8 GiB as one batch", "champion, one batch", ceiling,
                (("CUB", "CUB, the same monoid"), ("reduce", "reduce, one batch"))),
        benched(record, "tokens: 8 GiB as 3 MiB batches", "champion, 3 MiB batches", ceiling),
        raced(record, "seal and statistics", "seal", "champion", lanes="seal-stats"),
        raced(record, "seal, statistics, contribution", "seal", "champion", lanes="all"),
        raced(record, "atax f32 16384²", "atax-f32", "single-pass", size="16384x16384"),
        raced(record, "atax f64 65536×8192", "atax-f64", "single-pass", size="65536x8192"),
        either("atax f64 20000²", ("atax-shapes-f64", "champion"), ("atax-f64", "single-pass"), size="20000x20000"),
        raced(record, "histogram of bytes, uniform", "histogram", "champion", size=4294967296, data="uniform"),
        raced(record, "histogram of bytes, Zipf", "histogram", "champion", size=4294967296, data="zipf"),
        raced(record, "histogram, 50,257 bins, Zipf", "histogram-u32", "champion", data="zipf"),
        either("histogram, 128,256 bins, Zipf", ("histogram-128256", "champion"), ("histogram-large", "champion"), data="zipf"),
        raced(record, "transpose 16384²", "transpose", "champion", size="16384x16384"),
        raced(record, "transpose 16383×16381", "transpose", "champion", size="16383x16381"),
        raced(record, "structure of arrays", "layout", "soa", fields="all"),
        raced(record, "fused chain", "fusion", "fused", chain="short"),
        benched(record, "feed: page-locked memory, of PCIe's copies", "engine, page-locked", copies),
    ]
    return [r for r in rows + fed if r]


def draw_limits(record):
    rows, left, width, high = limit_rows(record), 350, 520, 24
    scale = width / 110.0
    bottom = 44 + high * len(rows)
    parts = [text(16, 22, "Share of the measured limit: ceiling of the same run, reads or copies", "title")]
    for tick in range(0, 101, 20):
        parts += [line(left + tick * scale, 38, left + tick * scale, bottom, "limit" if tick == 100 else "grid"),
                  text(left + tick * scale, bottom + 16, f"{tick} %", "small", "middle")]
    for k, (label, share, peers) in enumerate(rows):
        y = 44 + k * high
        parts += [text(left - 8, y + 14, label, "", "end"),
                  f'<rect x="{left}" y="{y + 3}" width="{share * scale:.1f}" height="{high - 8}" rx="2" class="own"/>',
                  text(left + max(share, 100) * scale + 8, y + 14, f"{share:.1f} %")]
        for _, at in peers:
            x = left + at * scale
            parts += [line(x, y + 1, x, y + high - 3, "mark")]
    parts.append(text(left, bottom + 34, "orange marks: CUB, cuBLAS, the second paper's reduce, where they race along", "small"))
    return svg(left + width + 70, bottom + 46, "Share of the measured limit by op", parts)


def ticks_of(low, high):
    return [10.0 ** e for e in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def is_a_line(series):
    """A line needs more than one size."""
    return len({x for _, points in series for x, _ in points}) > 1


def draw_lines(title, across, up, series, spell_x, note="", is_log_up=True):
    """Series are (name, [(x, y)]); x is logarithmic."""
    left, top, width, height = 70, 44, 600, 300
    xs = [x for _, points in series for x, _ in points]
    ys = [y for _, points in series for _, y in points]
    low_x, high_x = min(xs), max(xs)
    low_y, high_y = (min(ys) * 0.8, max(ys) * 1.25) if is_log_up else (0.0, max(ys) * 1.1)

    def at_x(x):
        return left + width * math.log(x / low_x) / math.log(high_x / low_x)

    def at_y(y):
        part = math.log(y / low_y) / math.log(high_y / low_y) if is_log_up else (y - low_y) / (high_y - low_y)
        return top + height * (1.0 - part)

    parts = [text(16, 22, title, "title")]
    for y in ticks_of(low_y, high_y) if is_log_up else [k for k in range(int(high_y) + 1)]:
        parts += [line(left, at_y(y), left + width, at_y(y), "grid"), text(left - 8, at_y(y) + 4, f"{y:g}", "small", "end")]
    for x in sorted(set(xs)):
        parts.append(text(at_x(x), top + height + 18, spell_x(x), "small", "middle"))
    for k, (name, points) in enumerate(series):
        dots = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in points)
        kind = "limit" if name.startswith("ceiling") else f"line{k}"
        parts.append(f'<polyline points="{dots}" class="{kind}"/>')
        if kind != "limit":
            parts += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3.5" class="dot{k}"/>' for x, y in points]
        y_name = top + 12 + 20 * k
        parts += [line(left + width + 20, y_name, left + width + 44, y_name, kind), text(left + width + 52, y_name + 4, name)]
    parts += [text(left + width / 2, top + height + 40, across, "small", "middle"), text(left - 54, top - 8, up, "small")]
    if note:
        parts.append(text(left, top + height + 60, note, "small"))
    return svg(left + width + 220, top + height + 74, title, parts)


def spelled_bytes(count):
    return f"{count / 2**30:.0f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def draw_batches(record):
    wanted = (("champion", "cuda"), ("champion", "opencl"), ("reduce", "cuda"), ("cub", "cuda"))
    series = []
    for name, backend in wanted:
        points = [(r["useful_bytes"], 1000.0 * claims.kernel(r)["median_ms"])
                  for r in claims.rows(record, "tokens", name, backend)]
        if points:
            series.append((f"{name}, {backend}", sorted(points)))
    ceiling = (record["benches"].get("cuda") or {}).get("ceiling_gb_s")
    if not is_a_line(series):
        return None
    if ceiling:
        series.append(("ceiling, no launch", [(x, x / ceiling / 1000.0) for x, _ in series[0][1]]))
    return draw_lines("One batch, reduced and applied, by its length", "tokens of a batch", "µs", series, spelled_bytes,
                      "Alone, with its launch; batches that fit the 60 MB L2 cache are found there.")


def draw_atax(record):
    series = []
    for name in ("single-pass", "graph", "one-launch", "coalesced"):
        points = []
        for row in claims.rows(record, "atax-f32", name):
            faster = claims.times_faster(record, "atax-f32", name, "cublas", size=row["size"])
            if faster:
                points.append((int(row["size"].split("x")[0]), faster))
        if points:
            series.append((name, sorted(points)))
    if not is_a_line(series):
        return None
    return draw_lines("ATAX f32: times as fast as cuBLAS's two gemv", "rows and columns", "×", series,
                      lambda x: f"{x:.0f}²", is_log_up=False)


SWEEP_COLOURS = ((0.97, "#cf222e", "below 0.97"), (1.0, "#e16f24", "0.97 to 1"), (1.3, "#bf8700", "1 to 1.3"),
                 (1.7, "#2da44e", "1.3 to 1.7"), (math.inf, "#218bff", "1.7 and more"))


def draw_sweep(document, backend):
    """Rows and columns on logarithmic axes; the colour of a shape is its ratio."""
    found = claims.sweep(document, backend)
    if not found:
        return None
    own, peer = tables.sweep_names(document, backend)
    left, top, side = 70, 74, 480
    host, title = document["host"], f"{own} over {peer}: speed at {len(found)} random shapes"
    device = next((d["name"] for d in document["devices"] if d["backend"] == backend and d["available"]), host["cpu"])
    threads = f", {host['threads']} threads" if backend == "cpu" else ""
    decades = max(1, math.ceil(math.log10(max(max(rows, cols) for _, rows, cols, _, _ in found))))
    parts = [text(16, 22, title, "title"), text(16, 40, f"{device}{threads}, {host['date'][:10]}", "small"),
             text(16, 56, f"median time of {peer} / median time of {own.rsplit('.', 1)[1]}; the least: {tables.sweep_shape(found[0])}", "small"),
             text(left + side / 2, top + side + 36, "columns of A", "small", "middle"),
             f'<g transform="rotate(-90 18 {top + side / 2:.1f})">{text(18, top + side / 2, "rows of A", "small", "middle")}</g>',
             text(left + side + 21, top + 4, f"times as fast as {peer}", "small")]
    for k in range(decades + 1):
        step = side * k / decades
        power = ("1", "10")[k] if k < 2 else "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(k))
        parts += [line(left + step, top, left + step, top + side, "grid"),
                  line(left, top + side - step, left + side, top + side - step, "grid"),
                  text(left + step, top + side + 18, power, "small", "middle"),
                  text(left - 8, top + side - step + 4, power, "small", "end")]
    for shape in reversed(found):  # the worst on top
        ratio, rows, cols, dtype, _ = shape
        colour = next(c for limit, c, _ in SWEEP_COLOURS if ratio < limit)
        kind = f'r="3" fill="{colour}"' if dtype == "f32" else f'r="6" fill="none" stroke="{colour}" stroke-width="2"'
        x, y = (side * math.log10(n) / decades for n in (cols, rows))
        parts.append(f'<circle cx="{left + x:.1f}" cy="{top + side - y:.1f}" {kind}><title>{tables.sweep_shape(shape)}</title></circle>')
    least = 0.0
    for k, (limit, colour, words) in enumerate(SWEEP_COLOURS):
        count, y = sum(least <= ratio < limit for ratio, *_ in found), top + 26 + 20 * k
        parts += [f'<circle cx="{left + side + 26}" cy="{y}" r="5" fill="{colour}"/>', text(left + side + 40, y + 4, f"{words}: {count}")]
        least = limit
    parts.append(text(left + side + 21, top + 28 + 20 * len(SWEEP_COLOURS), "dots: f32, rings: f64", "small"))
    return svg(left + side + 190, top + side + 48, title, parts)


def all_pictures(record):
    """name -> SVG; pictures without figures in the record are omitted."""
    drawn = {"limits": draw_limits(record) if limit_rows(record) else None, "batches": draw_batches(record),
             "atax": draw_atax(record)}
    drawn.update({f"sweep-{backend}": draw_sweep(record["races"].get(f"sweep-{backend}", {}), backend)
                  for backend in ("cuda", "cpu")})
    return {name: picture for name, picture in drawn.items() if picture}
