"""page: a record as one self-contained HTML file."""
import html

from . import pictures, tables

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #57606a; --line: #d0d7de; --paper: #fff; --good: #1a7f37; --bad: #cf222e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --paper: #0d1117; --good: #3fb950;
--bad: #f85149 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem } p.soft, .soft { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top }
th:first-child, td:first-child { text-align: left } td.text { text-align: left }
.met { color: var(--good) } .missed { color: var(--bad); font-weight: 600 } svg { max-width: 100%; height: auto }
code { font-size: 12px; overflow-wrap: anywhere }
"""


def cell(value, is_head):
    tag = "th" if is_head else "td"
    kind = f' class="{value}"' if value in ("met", "missed") else ' class="text"' if len(value) > 40 else ""
    return f"<{tag}{kind}>{html.escape(value)}</{tag}>"


def table(title, words, head, rows):
    parts = [f"<h2>{html.escape(title)}</h2>"]
    if words:
        parts.append(f'<p class="soft">{html.escape(words)}</p>')
    parts.append('<div class="wide"><table>')
    if any(head):
        parts.append("<tr>" + "".join(cell(h, True) for h in head) + "</tr>")
    parts += ["<tr>" + "".join(cell(c, False) for c in row) + "</tr>" for row in rows]
    return "\n".join(parts + ["</table></div>"])


def device_words(machine):
    """Each card with its driver: "NVIDIA H200, driver 580.159.04"."""
    return "; ".join(", driver ".join(gpu.strip().split(", ", 1)) for gpu in machine["gpus"].split(";") if gpu.strip())


def machine_words(machine):
    return " · ".join(str(x) for x in (device_words(machine), f"{machine['cores']} cores, {machine['cpu']}", machine["nvcc"],
                                       machine["kernel"]) if x)


def verdict(record):
    by = {"met": 0, "missed": 0, "not measured": 0}
    for claim in record["claims"]:
        by[claim["status"]] += 1
    return f"{by['met']} of {len(record['claims'])} figures met, {by['missed']} missed, {by['not measured']} not measured"


def make(record):
    machine = record["machine"]
    drawn = "\n".join(f"<figure>{p}</figure>" for p in pictures.all_pictures(record).values())
    body = "\n".join(table(*t) for t in tables.all_tables(record))
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>iron: the record of {machine["date"][:10]}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>\n'
            f"<h1>The record</h1>\n<p class=\"soft\">{html.escape(machine_words(machine))}<br>\n"
            f"{html.escape(machine['date'])}, commit <code>{html.escape(machine['commit'])}</code>, "
            f"<code>scripts/gpu-check --profile</code></p>\n<p>{html.escape(verdict(record))}.</p>\n{drawn}\n{body}\n</body></html>\n")
