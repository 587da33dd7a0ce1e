"""claims: performance requirements on a large GPU, checked against a record.

A claim is a row: what, the bar, an aim beyond it where there is one, and how the figure is found in
a record. Figures are ratios within one run wherever they can be: to the ceiling that the run
measured, or to a peer that raced along. A figure that the record does not have is "not measured",
never met.
"""
import math
import statistics

CEILING = "of the read ceiling"
COPY = "of the copy ceiling"


def kernel(row):
    return row["scopes"]["kernel"]


def rows(record, race, contender, backend="cuda", **wanted):
    """Rows of a race that were measured and verified; `wanted` are their size, dtype and parameters."""
    found = []
    for row in record["races"].get(race, {}).get("results", []):
        facts = {"size": row["size"], "dtype": row["dtype"], **row["params"]}
        if (row["contender"] == contender and row["backend"] == backend and row["status"] == "ok"
                and row["verified"] and row["memory"] in ("pageable", "host")
                and all(str(facts.get(k)) == str(v) for k, v in wanted.items())):
            found.append(row)
    return found


def share(record, race, contender, backend="cuda", **wanted):
    """The smallest share of the ceiling among the rows: a claim about several holds for each."""
    shares = [kernel(r)["percent_of_ceiling"] / 100.0 for r in rows(record, race, contender, backend, **wanted)
              if kernel(r)["percent_of_ceiling"]]
    return min(shares, default=None)


def times_faster(record, race, contender, peer, backend="cuda", **wanted):
    """The smallest ratio to a peer over the cases in which both were measured."""
    ratios = []
    for own in rows(record, race, contender, backend, **wanted):
        for other in rows(record, race, peer, backend, size=own["size"], dtype=own["dtype"], **own["params"]):
            ratios.append(kernel(other)["median_ms"] / kernel(own)["median_ms"])
    return min(ratios, default=None)


def sweep(document, backend):
    """(ratio to the peer, rows, columns, type, our median in ms) of each case of a race of one contender and one peer
    over random shapes; the worst first. Ours without a right answer: ratio 0. A peer without one: no case."""
    cases = {}
    for row in document.get("results", []):
        if row["backend"] == backend and row["status"] != "skipped":
            is_right = row["status"] == "ok" and row["verified"]
            cases.setdefault((row["size"], row["dtype"]), {})[row["peer"]] = kernel(row)["median_ms"] if is_right else math.inf
    return sorted((times[True] / times[False], *map(int, size.split("x")), dtype, times[False])
                  for (size, dtype), times in cases.items() if len(times) == 2 and times[True] < math.inf)


def swept(backend, choose):
    """The least ratio (choose is min) or the median one of a sweep."""
    def figure(record):
        found = sweep(record["races"].get(f"sweep-{backend}", {}), backend)
        return choose([ratio for ratio, *_ in found]) if found else None
    return figure


def slowest_of(record, race, contender, usual, others):
    """The least rate with other data over the rate with the usual data."""
    rates = {r["params"].get("data"): kernel(r)["gb_s"] for r in rows(record, race, contender)}
    if not all(data in rates for data in (usual, *others)):
        return None
    return min(rates[data] for data in others) / rates[usual]


def bench_row(record, name, backend="cuda"):
    bench = record["benches"].get(backend) or {"rows": []}
    return next((r for r in bench["rows"] if r["name"] == name and r["verified"]), None)


def bench_rate(record, name, backend="cuda"):
    row = bench_row(record, name, backend)
    return row["gb_s"] if row else None


def ratio(over, under):
    return over / under if over and under else None


def resident(name):
    return lambda r: ratio(bench_rate(r, name), (r["benches"].get("cuda") or {}).get("ceiling_gb_s"))


def chain_us(record):
    row = bench_row(record, "champion, chain of 200, each")
    return 1000.0 * row["median_ms"] if row else None


def call_share(mib, of_a_chain=False):
    """The time of one read at the ceiling over that of a call with cold caches; a call that is not one of a chain also
    has an empty kernel's time."""
    def figure(record):
        empty = bench_row(record, "empty kernel")
        call = bench_row(record, f"champion, {mib} MiB" + (", of a chain" if of_a_chain else ""))
        if not empty or not call:
            return None
        read_ms = mib * 2**20 / record["benches"]["cuda"]["ceiling_gb_s"] * 1e-6
        return ((0 if of_a_chain else empty["median_ms"]) + read_ms) / call["median_ms"]
    return figure


def feed_rate(record, dtype):
    """The median of the GPU's feeds."""
    rates = sorted(f["gb_per_s"] for f in record["feeds"].get(dtype, []) if f["backend"] == "cuda")
    return rates[len(rates) // 2] if rates else None


def fed(dtype):
    return lambda r: ratio(feed_rate(r, dtype), bench_rate(r, "bare copies, page-locked"))


def on_opencl(record, race, contender, **wanted):
    """Share of CUDA's rate in the same race, or in the same run if the two raced separately."""
    own = rows(record, race, contender, "opencl", **wanted)
    other = rows(record, race, contender, "cuda", **wanted)
    return ratio(kernel(own[0])["gb_s"], kernel(other[0])["gb_s"]) if own and other else None


def cpu_champion(vocab):
    """Of the row that the product uses in that case: rows of a mode are sorted best first."""
    def figure(record):
        bench = record["benches"].get("tokens") or {"rows": []}
        return next((r["of_ceiling"] for r in bench["rows"]
                     if r["vocab"] == vocab and r["name"].startswith("tokens.cpu.champion")), None)
    return figure


def adaptive_gap(record):
    """How far auto is behind the best contender, in the worst case over the densities."""
    worst = None
    for own in rows(record, "adaptive", "auto"):
        best = min(kernel(r)["median_ms"] for r in record["races"]["adaptive"]["results"]
                   if r["status"] == "ok" and r["size"] == own["size"] and r["params"] == own["params"])
        gap = kernel(own)["median_ms"] / best - 1.0
        worst = gap if worst is None else max(worst, gap)
    return worst


def above_ceiling(record):
    """Rows of the whole races that are above 102 % of their ceiling though their data do not fit the cache."""
    races = [record["races"].get(f"whole-{k}") for k in (1, 2, 3)]
    return sum(r["above_ceiling"] for race in races for r in race["results"] if r["status"] == "ok") if all(races) else None


def failures(record):
    return sum(t["failed"] for t in record["selftests"]) if record["selftests"] else None


def sanitizer_errors(record):
    return sum(s["status"] != 0 for s in record["sanitizers"]) if record["sanitizers"] else None


def claim(op, what, unit, bar, figure, aim=None):
    """For units that end in 'or less', smaller is better."""
    return {"op": op, "what": what, "unit": unit, "bar": bar, "aim": aim, "figure": figure}


CALL_MIB = (16, 32, 64, 128, 256)
HISTOGRAM_DATA = ("uniform", "zipf", "one", "sorted", "skewed")
# Bins, and bars for uniform data and for Zipf's law.
LARGE_VOCABULARIES = ((100277, 0.85, 0.85), (128256, 0.75, 0.85), (151936, 0.65, 0.85), (200019, 0.55, 0.85),
                      (256000, 0.5, 0.85), (1000000, None, 0.5))
# Shapes of ATAX that hold no record: type, size, bar of the ceiling.
ATAX_SHAPES = (("f64", "16384x16384", 0.85), ("f64", "20000x20000", 0.85), ("f32", "20000x20000", 0.85),
               ("f32", "100000x1000", 0.8), ("f32", "12345x6789", 0.8), ("f32", "30011x4099", 0.8), ("f64", "100000x500", 0.8),
               ("f64", "30011x4099", 0.8), ("f64", "300001x333", 0.8), ("f64", "5000001x17", 0.8), ("f32", "300001x300", 0.8),
               ("f32", "4000x4000", 0.7))

CLAIMS = [
    claim("tokens", "champion, 8 GiB resident, one batch", CEILING, 0.98, resident("champion, one batch")),
    claim("tokens", "champion, 8 GiB as 3 MiB batches, lattice updated for each", CEILING, 0.95,
          resident("champion, 3 MiB batches")),
    claim("tokens", "champion over CUB's reduction of the same monoid", "×", 1.13,
          lambda r: ratio(bench_rate(r, "champion, one batch"), bench_rate(r, "CUB, the same monoid"))),
    claim("tokens", "champion over the second paper's reduce", "×", 2.3,
          lambda r: ratio(bench_rate(r, "champion, one batch"), bench_rate(r, "reduce, one batch"))),
    claim("tokens", "one 3 MiB batch in a replayed chain, reduced and applied", "µs or less", 3.3, chain_us, 2.5),
] + [
    claim("tokens", f"one batch of {mib} MiB, cold caches, {how}", "of an empty kernel and one read", 0.85,
          call_share(mib, of_a_chain))
    for of_a_chain, how in ((False, "a replayed call"), (True, "one of a replayed chain")) for mib in CALL_MIB
] + [
    claim("tokens", "champion through NVIDIA's OpenCL, 8 GiB", "of CUDA's", 0.97,
          lambda r: on_opencl(r, "tokens", "champion", size=2147483648)),
    claim("feed", "engine fed from page-locked memory", "of bare copies", 0.95,
          lambda r: ratio(bench_rate(r, "engine, page-locked"), bench_rate(r, "bare copies, page-locked"))),
    claim("feed", "iron feed of an 8 GiB file in the page cache, u32", "of bare copies", 0.6, fed("u32"), 0.95),
    claim("feed", "iron feed of the same tokens as u16, by the tokens' bytes in the file", "of bare copies", 0.6,
          fed("u16"), 0.9),
    claim("seal", "seal and statistics, 8 GiB resident", CEILING, 0.95,
          lambda r: share(r, "seal", "champion", lanes="seal-stats")),
    claim("seal", "seal, statistics and contribution in one read", CEILING, 0.93,
          lambda r: share(r, "seal", "champion", lanes="all")),
    claim("seal", "seal and statistics through NVIDIA's OpenCL", "of CUDA's", 0.97,
          lambda r: on_opencl(r, "seal", "champion", lanes="seal-stats")),
    claim("atax", "single-pass over cuBLAS, f32 16384²", "×", 1.85,
          lambda r: times_faster(r, "atax-f32", "single-pass", "cublas", size="16384x16384")),
    claim("atax", "single-pass over cuBLAS, f64 65536×8192", "×", 1.85,
          lambda r: times_faster(r, "atax-f64", "single-pass", "cublas", size="65536x8192")),
    claim("atax", "single-pass over cuBLAS, f32 8192²", "×", 1.75,
          lambda r: times_faster(r, "atax-f32", "single-pass", "cublas", size="8192x8192")),
    claim("atax", "single-pass over cuBLAS, f32 4096²", "×", 1.1,
          lambda r: times_faster(r, "atax-f32", "single-pass", "cublas", size="4096x4096")),
    claim("atax", "graph over cuBLAS, f32 256²", "×", 1.1,
          lambda r: times_faster(r, "atax-f32", "graph", "cublas", size="256x256")),
] + [
    claim("atax", f"champion, {dtype} {size.replace('x', '×')}", CEILING, bar,
          lambda r, dtype=dtype, size=size: share(r, f"atax-shapes-{dtype}", "champion", size=size))
    for dtype, size, bar in ATAX_SHAPES
] + [
    claim("atax", f"champion over cuBLAS, {dtype} {size.replace('x', '×')}", "×", 1.15,
          lambda r, dtype=dtype, size=size: times_faster(r, f"atax-shapes-{dtype}", "champion", "cublas", size=size), 1.4)
    for dtype, size in (("f32", "5000x100000"), ("f64", "3000x100000"))
] + [
    claim("atax", f"{'champion' if backend == 'cuda' else 'single-pass'} over {peer}, 200 random shapes, f32 and f64, {which}", "×", bar, swept(backend, choose))
    for backend, peer in (("cuda", "cuBLAS"), ("cpu", "OpenBLAS"))
    for which, bar, choose in (("the worst", 0.97, min), ("median", 1.3, statistics.median))
] + [
    claim("histogram", f"u8, 256 bins, {data}, 4 GiB", CEILING, 0.94,
          lambda r, data=data: share(r, "histogram", "champion", size=4294967296, data=data)) for data in HISTOGRAM_DATA
] + [
    claim("histogram", f"u8, {data}, over CUB called once", "×", 1.75,
          lambda r, data=data: times_faster(r, "histogram", "champion", "cub", size=4294967296, data=data))
    for data in HISTOGRAM_DATA
] + [
    claim("histogram", f"50,257 bins of u32, {data}", CEILING, 0.92,
          lambda r, data=data: share(r, "histogram-u32", "champion", data=data)) for data in ("uniform", "zipf")
] + [
    claim("histogram", f"50,257 bins of u32, {data}, over CUB", "×", 8,
          lambda r, data=data: times_faster(r, "histogram-u32", "champion", "cub", data=data))
    for data in ("uniform", "zipf")
] + [
    claim("histogram", f"{bins:,} bins of u32, {data}", CEILING, bar,
          lambda r, bins=bins, data=data: share(r, f"histogram-{bins}", "champion", data=data))
    for bins, uniform, zipf in LARGE_VOCABULARIES for data, bar in (("uniform", uniform), ("zipf", zipf)) if bar
] + [
    claim("histogram", f"{bins:,} bins of u32, the slowest of one value, sorted and skewed", "of uniform", 0.9,
          lambda r, bins=bins: slowest_of(r, f"histogram-{bins}", "champion", "uniform", ("one", "sorted", "skewed")))
    for bins, *_ in LARGE_VOCABULARIES
] + [
    claim("histogram", "u16, 65,536 bins, uniform", CEILING, 0.85, lambda r: share(r, "histogram-u16", "champion", data="uniform")),
    claim("histogram", "128,256 bins of u32, any data, over CUB", "×", 3,
          lambda r: times_faster(r, "histogram-128256", "champion", "cub")),
    claim("transpose", "champion, 16384²", COPY, 0.93, lambda r: share(r, "transpose", "champion", size="16384x16384"), 0.97),
    claim("transpose", "champion over cuBLAS geam, 16384²", "×", 1.0,
          lambda r: times_faster(r, "transpose", "champion", "cublas", size="16384x16384")),
    claim("transpose", "champion over cuBLAS geam, 16383×16381", "×", 1.0,
          lambda r: times_faster(r, "transpose", "champion", "cublas", size="16383x16381")),
] + [
    claim("transpose", f"{dtype}, {size.replace('x', '×')}", COPY, bar,
          lambda r, dtype=dtype, size=size: share(r, f"transpose-{dtype}", "champion", size=size))
    for size, bar, dtypes in (("32768x32768", 0.95, ("u8", "u16", "f32", "f64")), ("16383x16381", 0.85, ("u8", "u16", "f32", "f64")))
    for dtype in dtypes
] + [
    claim("transpose", f"over cuBLAS geam, {dtype}, all sizes", "×", 0.98,
          lambda r, dtype=dtype: times_faster(r, f"transpose-{dtype}", "champion", "cublas")) for dtype in ("f32", "f64")
] + [
    claim("layout", "soa, all fields and one", COPY, 0.93, lambda r: share(r, "layout", "soa")),
    claim("fusion", "fused, short chain and long", COPY, 0.93, lambda r: share(r, "fusion", "fused")),
    claim("adaptive", "auto behind the best contender, at any density", "or less", 0.05, adaptive_gap),
    claim("cpu", "tokens champion on all cores, vocabulary 65,536", CEILING, 0.9, cpu_champion(65536)),
    claim("cpu", "tokens champion on all cores, vocabulary 50,257", CEILING, 0.9, cpu_champion(50257)),
    claim("cpu", "tokens champion on all cores, vocabulary 128,256", CEILING, 0.9, cpu_champion(128256)),
    claim("checks", "three whole races: rows above 102 % of their ceiling", "or less", 0, above_ceiling),
    claim("checks", "selftest on every device: checks that failed", "or less", 0, failures),
    claim("checks", "compute-sanitizer: tools that found something", "or less", 0, sanitizer_errors),
]


def is_met(figure, bar, unit):
    return figure <= bar if unit.endswith("or less") else figure >= bar


def says(figure, unit):
    text = f"{figure:.0f}" if figure == int(figure) else f"{figure:.3f}" if figure < 10 else f"{figure:.1f}"
    unit = unit.removesuffix("or less").strip()
    return f"{text} {unit}".strip()


def judge(record):
    found = []
    for c in CLAIMS:
        figure = c["figure"](record)
        status = "not measured"
        if figure is not None:
            status = "met" if is_met(figure, c["bar"], c["unit"]) else "missed"
        found.append({**c, "figure": figure, "status": status,
                      "says": "not measured" if figure is None else says(figure, c["unit"])})
    return found
