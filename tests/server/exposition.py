# SPDX-License-Identifier: MIT
"""A strict parser of Prometheus' text format (version 0.0.4).

Every family has one HELP and one TYPE line before its samples, its samples are adjacent and unique,
counters end with _total, histograms have increasing buckets up to +Inf, whose last value is the
count.
"""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? (\S+)\Z")
KINDS = ("counter", "gauge", "histogram")


def family_of(name: str, families: dict) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and families.get(base, {}).get("kind") == "histogram":
            return base
    return name


def parse(text: str) -> dict:
    """{family: {"kind", "help", "samples": {(name, labels): value}}}, or an AssertionError."""
    assert text.endswith("\n"), "the last line does not end"
    families, current = {}, None
    for line in text[:-1].split("\n"):
        assert line and line == line.strip(), f"a line: {line!r}"
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            assert re.fullmatch(NAME, name) and words and name not in families, line
            families[name] = {"help": words, "kind": None, "samples": {}}
            current = name
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            assert name == current and kind in KINDS and not families[name]["kind"], line
            families[name]["kind"] = kind
        else:
            take_sample(families, current, line)
    for name, family in families.items():
        check_family(name, family)
    return families


def take_sample(families, current, line):
    found = SAMPLE.match(line)
    assert found, f"a sample: {line!r}"
    name, labels, value = found.groups()
    family = family_of(name, families)
    assert family == current and families[family]["kind"], f"out of its place: {line!r}"
    key = (name, labels or "")
    assert key not in families[family]["samples"], f"twice: {line!r}"
    families[family]["samples"][key] = float(value)


def check_family(name, family):
    assert family["samples"] or family["kind"] != "histogram", f"{name} has no samples"
    if family["kind"] == "counter":
        assert name.endswith("_total"), f"the counter {name} does not end with _total"
        assert all(value >= 0 for value in family["samples"].values()), name
    if family["kind"] == "histogram":
        for labels, series in histogram_series(name, family).items():
            check_histogram(f"{name}{{{labels}}}", series)


def histogram_series(name, family) -> dict:
    """{labels without le: {"buckets": [(edge, value)], "sum", "count"}}"""
    series = {}
    for (sample, labels), value in family["samples"].items():
        edge = re.search(r'le="([^"]*)"', labels)
        rest = re.sub(r',?le="[^"]*"', "", labels)
        one = series.setdefault(rest, {"buckets": []})
        if sample == f"{name}_bucket":
            one["buckets"].append((edge[1], value))
        else:
            assert edge is None, (sample, labels)
            one[sample.removeprefix(f"{name}_")] = value
    return series


def check_histogram(name, series):
    edges, values = zip(*series["buckets"])
    assert edges[-1] == "+Inf" and list(values) == sorted(values), (name, series)
    assert [float(e) for e in edges] == sorted({float(e) for e in edges}), (name, edges)
    assert values[-1] == series["count"], (name, series)
    assert series["sum"] >= 0 and (series["sum"] > 0) == (series["count"] > 0), (name, series)


def value(families, name, **labels) -> float:
    """The value of one sample; `labels` must be complete."""
    text = ",".join(f'{n}="{v}"' for n, v in labels.items())
    return families[family_of(name, families)]["samples"][name, text]


def uploads(api) -> int:
    """The number of large bodies that the server is receiving."""
    families = parse(api.get("/metrics").body.decode())
    return int(families["iron_uploads"]["samples"]["iron_uploads", ""])
