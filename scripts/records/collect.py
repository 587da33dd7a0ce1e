"""collect: combines the files that scripts/gpu-check writes into one document, iron.record/1.

Races are kept except for their single samples, which take ten times the space of the rest; the archive has
them. Only the claims are computed here; everything else is copied from the programs' output. A run may have
been interrupted: missing and truncated files count as not measured.
"""
import json
import os

from . import claims, profile

SCHEMA = "iron.record/1"


def parse(text):
    """Parses a record; ValueError if the text is not a valid record."""
    record = json.loads(text)
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    return record


def read_json(folder, name, missing=None):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return missing
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except json.JSONDecodeError:
            return missing


def read_lines(folder, name):
    """One document per line; a line may also contain a list of documents."""
    path, found = os.path.join(folder, name), []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    document = json.loads(line)
                except json.JSONDecodeError:
                    continue
                found += document if isinstance(document, list) else [document]
    return found


def without_samples(node):
    if isinstance(node, dict):
        return {k: without_samples(v) for k, v in node.items() if k not in ("samples", "samples_ms", "samples_s")}
    if isinstance(node, list):
        return [without_samples(v) for v in node]
    return node


def by_op(document):
    """Splits a race of several ops into one race per op."""
    return {op: {**document, "results": [r for r in document["results"] if r["op"] == op]}
            for op in dict.fromkeys(r["op"] for r in document["results"])}


def races(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json") and not name.startswith("profile-"):
            document = read_json(folder, name)
            if isinstance(document, dict) and document.get("schema") == "iron.arena/1":
                race = name.removesuffix(".json").removeprefix("arena-")
                document = without_samples(document)
                found.update(by_op(document) if race == "techniques" else {race: document})
    return found


def selftests(folder):
    found = []
    for name in ("gpus", "quick"):
        document = read_json(folder, f"selftest-{name}.json")
        if document:
            found.append({"name": name, "passed": document["passed"], "failed": document["failed"],
                          "skipped": document["skipped"]})
    return found


def collect(folder):
    record = {
        "schema": SCHEMA,
        "machine": read_json(folder, "machine.json"),
        "steps": read_lines(folder, "steps.jsonl"),
        "selftests": selftests(folder),
        "sanitizers": read_lines(folder, "sanitizer.jsonl"),
        "races": races(folder),
        "benches": {name: bench for name in ("cuda", "opencl", "tokens")
                    if (bench := without_samples(read_json(folder, f"bench-{name}.json")))},
        "feeds": {dtype: read_lines(folder, f"feed-{dtype}.jsonl") for dtype in ("u32", "u16")},
        "sums": read_lines(folder, "sum.jsonl"),
        "profiles": profile.read_all(folder),
    }
    record["claims"] = claims.judge(record)
    return record


def rounded(node):
    """Seven digits: measurements are not more precise, and the document is half as long."""
    if isinstance(node, float):
        return float(f"{node:.7g}")
    if isinstance(node, dict):
        return {k: rounded(v) for k, v in node.items()}
    if isinstance(node, list):
        return [rounded(v) for v in node]
    return node


def text_of(record):
    """One line per row, so that a changed row is one changed line in a diff."""
    def lay_out(node, depth):
        flat = json.dumps(node, ensure_ascii=False)
        if depth == 0 or not isinstance(node, (dict, list)) or not node or len(flat) < 100:
            return flat
        pad = " " * (5 - depth)
        if isinstance(node, dict):
            inner = [f"{pad}{json.dumps(k)}: {lay_out(v, depth - 1)}" for k, v in node.items()]
            return "{\n" + ",\n".join(inner) + "\n" + pad[:-1] + "}"
        return "[\n" + ",\n".join(pad + lay_out(v, depth - 1) for v in node) + "\n" + pad[:-1] + "]"
    return lay_out(rounded(record), 4) + "\n"


def write(record, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text_of(record))
