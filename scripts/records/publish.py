"""publish: writes a record into the docs: docs/results/NAME, the index, and the figures of docs/speed.md.

Everything but record.json is generated from record.json, so that `scripts/record check` can generate it
again and detect edited figures and outdated pages.
"""
import os
import re

from . import collect, page, pictures, tables

FOLDER = os.path.join("docs", "results")
SPEED = os.path.join("docs", "speed.md")
BEGIN, END = "<!-- record: figures below are written by scripts/record -->", "<!-- record: end -->"


def name_of(record):
    machine = record["machine"]
    device = (machine["gpus"] or machine["cpu"]).split(";")[0].split(",")[0]
    words = re.sub(r"[^a-z0-9]+", "-", device.lower().replace("nvidia", "")).strip("-")
    return f"{machine['date'][:10]}-{words}"


def markdown_table(title, words, head, rows):
    def row_of(cells):
        return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"
    text = f"## {title}\n\n" + (f"{words}\n\n" if words else "")
    return text + "\n".join([row_of(head), "|---" + "|---:" * (len(head) - 1) + "|"] + [row_of(r) for r in rows]) + "\n\n"


def results_page(record):
    machine = record["machine"]
    text = ("<!-- Made by scripts/record from record.json; not to be changed by hand. -->\n"
            f"# The record of {machine['date'][:10]}\n\n{page.machine_words(machine)}\n\n"
            f"{machine['date']}, commit `{machine['commit']}`, by `scripts/gpu-check --profile`. Every row was verified before and\n"
            f"after it was timed. {page.verdict(record)}; [limits.md](../../limits.md) says what limits each op.\n\n")
    text += "".join(f"![{name}]({name}.svg)\n\n" for name in pictures.all_pictures(record))
    text += "".join(markdown_table(*t) for t in tables.all_tables(record))
    return text.rstrip() + "\n"


def records(root):
    """(name, record), newest first."""
    folder = os.path.join(root, FOLDER)
    names = sorted((n for n in os.listdir(folder) if os.path.isdir(os.path.join(folder, n))), reverse=True) \
        if os.path.isdir(folder) else []
    found = []
    for name in names:
        with open(os.path.join(folder, name, "record.json"), encoding="utf-8") as file:
            found.append((name, collect.parse(file.read())))
    return sorted(found, key=lambda item: item[1]["machine"]["date"], reverse=True)


def index_page(found):
    rows = [[f"[{name}]({name}/README.md)", page.device_words(r["machine"]) or r["machine"]["cpu"], r["machine"]["commit"][:12],
             page.verdict(r)] for name, r in found]
    return ("<!-- Made by scripts/record; not to be changed by hand. -->\n"
            "# Results\n\nEach folder is one run of `scripts/gpu-check --profile`, published with `scripts/record publish`:\n"
            "`record.json` is what was measured ([schema](../schema/record-1.json)), the rest is made of it.\n\n"
            + markdown_table("Records", "", ["record", "device", "commit", "figures asked for"], rows)).rstrip() + "\n"


def speed_rows(record):
    wanted = (("tokens", "champion, 8 GiB resident, one batch"), ("tokens", "champion, 8 GiB as 3 MiB batches"),
              ("tokens", "champion over CUB"), ("tokens", "champion over the second paper"), ("tokens", "one 3 MiB batch"),
              ("tokens", "champion through NVIDIA"), ("feed", "iron feed of an 8 GiB file"), ("seal", "seal and statistics, 8 GiB"),
              ("seal", "seal, statistics and contribution"), ("atax", "single-pass over cuBLAS, f32 16384²"),
              ("atax", "graph over cuBLAS, f32 256²"), ("histogram", "u8, 256 bins, uniform"), ("histogram", "u8, uniform, over CUB"),
              ("histogram", "50,257 bins of u32, zipf, over CUB"), ("transpose", "champion, 16384²"),
              ("transpose", "champion over cuBLAS geam, 16384²"))
    rows = []
    for op, start in wanted:
        claim = next(c for c in record["claims"] if c["op"] == op and c["what"].startswith(start))
        rows.append([f"{op}: {claim['what']}", claim["says"]])
    return rows


def speed_block(found):
    name, record = found[0]
    machine = record["machine"]
    ceiling = (record["benches"].get("cuda") or {}).get("ceiling_gb_s")
    lines = [BEGIN, "", "    scripts/gpu-check --profile                          # builds, checks, races; leaves record.tar.gz",
             "    scripts/record publish build-gpu/results/record.tar.gz", "",
             f"{page.device_words(machine) or machine['cpu']}, {machine['date'][:10]}" + (f", read ceiling {ceiling:.0f} GB/s" if ceiling else "") +
             f": {page.verdict(record)} ([all of it](results/{name}/README.md), [what limits it](limits.md)).", "",
             "| | in one run |", "|---|---:|"]
    lines += [f"| {a} | {b} |" for a, b in speed_rows(record)]
    return "\n".join(lines + ["", f"![Share of the measured limit, op by op](results/{name}/limits.svg)", "", END])


def speed_with(root, found):
    text = text_at(os.path.join(root, SPEED))
    if BEGIN not in text or END not in text:
        raise SystemExit(f"record: {SPEED} has no place for figures; put '{BEGIN}' and '{END}' there")
    before, rest = text.split(BEGIN, 1)
    return before + speed_block(found) + rest.split(END, 1)[1]


def wanted_files(root, found):
    """path below the root -> text."""
    files = {}
    for name, record in found:
        folder = os.path.join(FOLDER, name)
        files[os.path.join(folder, "README.md")] = results_page(record)
        files.update({os.path.join(folder, f"{n}.svg"): p for n, p in pictures.all_pictures(record).items()})
    if found:
        files[os.path.join(FOLDER, "README.md")] = index_page(found)
        files[SPEED] = speed_with(root, found)
    return files


def text_at(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def stale(root):
    return [path for path, text in wanted_files(root, records(root)).items() if text_at(os.path.join(root, path)) != text]


def refresh(root):
    for path, text in wanted_files(root, records(root)).items():
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def add(root, record, name):
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise SystemExit(f"record: invalid folder name '{name}'; use lowercase letters, digits, '-' and '.'")
    folder = os.path.join(root, FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    collect.write(record, os.path.join(folder, "record.json"))
    refresh(root)
    return os.path.join(FOLDER, name)
