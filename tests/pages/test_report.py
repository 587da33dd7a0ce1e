#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the reports written by tests/unit/test_report.c: the JSON with a parser and
docs/schema/arena-1.json, the CSV with a reader, the page in a browser.

    python3 tests/pages/test_report.py FOLDER      (the folder with wide.json, wide.html, ...)

axe-core, from web/node_modules, audits the pages.  Screenshots and a PDF are left beside the
reports for inspection.  Without chromium or python3-jsonschema the exit status is 77: skipped, with
the reason.
"""

import csv
import json
import math
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from browser import Browser  # noqa: E402  (found through the path set above)

REPO = Path(__file__).resolve().parents[2]
AXE = REPO / "web/node_modules/axe-core/axe.min.js"
FOLDER = Path(".")
KINDS = ("wide", "usual", "tiny")
TOP_KEYS = ["schema", "iron", "host", "devices", "ceilings", "results", "data"]
ROW_KEYS = ("op contender backend memory device size dtype params peer useful_bytes cache_resident "
            "status reason verified baseline speedup scopes").split()
SCOPE_KEYS = ("median_ms mean_ms min_ms p95_ms noise_percent gb_s percent_of_ceiling "
              "samples").split()


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def load(kind: str) -> dict:
    text = (FOLDER / f"{kind}.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=refuse_constant)


def variant(kind: str, change, comparison=None) -> str:
    """A page with the same document after change(document), and a comparison; its name in the
    folder."""
    text, document = (FOLDER / f"{kind}.html").read_text(encoding="utf-8"), load(kind)
    change(document)
    for part, value in (("data", document), ("before", comparison)):
        head, mark, rest = text.partition(f'id="{part}">')
        text = (head + mark + json.dumps(value).replace("<", "\\u003c") +
                rest[rest.index("</script>"):])
    name = f"{kind}-{change.__name__}"
    (FOLDER / f"{name}.html").write_text(text, encoding="utf-8")
    return name


def panels(rows, wanted=lambda row: True) -> int:
    """Panels of a chart: one per op, size, type, parameters and device."""
    return len({(r["op"], r["size"], r["dtype"], r["params"].get("data"), r["backend"])
                for r in rows if wanted(r)})


def kernel_of(document: dict) -> dict:
    """A kernel for which the driver reported everything."""
    return next(k for r in document["results"] for k in r["kernels"] if "registers" in k)


class Documents(unittest.TestCase):
    def test_json_has_the_keys_in_order(self):
        for kind in KINDS:
            document = load(kind)
            self.assertEqual(list(document), TOP_KEYS)
            self.assertEqual(document["schema"], "iron.arena/1")
            for row in document["results"]:
                self.assertEqual(list(row)[:len(ROW_KEYS)], ROW_KEYS)
                for scope in row["scopes"].values():
                    self.assertEqual(list(scope)[:len(SCOPE_KEYS)], SCOPE_KEYS)
                    self.assertTrue(all(map(math.isfinite, scope["samples"])))

    def test_json_follows_the_schema(self):
        import jsonschema
        schema = json.loads((REPO / "docs/schema/arena-1.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for kind in KINDS:
            validator.validate(load(kind))
        # and the schema is strict: each of these must be refused
        for spoil in (lambda d: d.pop("host"), lambda d: d.update(extra=1),
                      lambda d: d["results"][0].pop("verified"),
                      lambda d: d["results"][0].update(status="fine"),
                      lambda d: d["results"][0].update(scopes={}),
                      lambda d: d["results"][0]["scopes"]["kernel"].update(median_ms=None),
                      lambda d: d["results"][0]["params"].update(data=""),
                      lambda d: d["results"][0]["params"].update(data=[1]),
                      lambda d: d["results"][0].update(kernels=[{"name": "a"}]),
                      lambda d: kernel_of(d).update(registers=0),
                      lambda d: kernel_of(d).update(occupancy_percent=0),
                      lambda d: kernel_of(d).update(spill_bytes=None),
                      lambda d: kernel_of(d).update(colour="red"),
                      lambda d: kernel_of(d).update(prepare=False),
                      lambda d: next(r for r in d["results"] if r["status"] == "wrong")
                      .update(reason="")):
            document = load("usual")
            spoil(document)
            self.assertFalse(validator.is_valid(document))

    def test_csv_agrees_with_json(self):
        for kind in KINDS:
            results = load(kind)["results"]
            with open(FOLDER / f"{kind}.csv", newline="", encoding="utf-8",
                      errors="replace") as file:
                lines = list(csv.DictReader(file, strict=True))
            self.assertEqual(len(lines), sum(len(r["scopes"]) or 1 for r in results))
            kernels = [r for r in results if r["scopes"]]
            for line, row in zip((l for l in lines if l["scope"] == "kernel"), kernels):
                self.assertEqual(line["contender"], row["contender"])
                self.assertEqual(line.get("params.data", ""), row["params"].get("data", ""))
                kernel = max((k for k in row["kernels"] if not k.get("prepare")),
                             key=lambda k: k["groups"] * k["threads"], default={})
                self.assertEqual(line["kernel"], kernel.get("name", ""))
                for key in ("registers", "local_bytes", "spill_bytes", "occupancy_percent"):
                    self.assertEqual(line[key], str(kernel.get(key, "")))
                self.assertEqual(float(line["median_ms"]), row["scopes"]["kernel"]["median_ms"])
            reasons = {l["reason"].replace("�", "") for l in lines}
            self.assertEqual(reasons, {r["reason"].replace("�", "") for r in results})


class Pages(unittest.TestCase):
    # Pairs of texts in a chart that cover each other.
    OVERLAPPING = """[...document.querySelectorAll('[data-chart=%s] svg')].flatMap(s => {
        const texts = [...s.querySelectorAll('%s')].map(t => [t.textContent,
            t.getBoundingClientRect()]);
        return texts.flatMap(([a, p], k) => texts.slice(k + 1).filter(([, q]) =>
            p.left + 1 < q.right && q.left + 1 < p.right && p.top + 3 < q.bottom &&
            q.top + 3 < p.bottom).map(([b]) => a + ' / ' + b)); })"""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def open(self, kind, **options):
        page = self.browser.page(FOLDER / f"{kind}.html", **options)
        self.addCleanup(page.__exit__)
        page.settle()
        return page

    def count(self, page, selector: str) -> int:
        return page.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def assert_quiet(self, page):
        page.settle()
        self.assertEqual(page.complaints, [])

    def test_pages_show_the_raced_rows(self):
        for kind in KINDS:
            document, page = load(kind), self.open(kind)
            rows = [r for r in document["results"] if r["status"] == "ok"]
            with self.subTest(kind):
                marks = {chart: self.count(page, f"[data-chart={chart}] .mark")
                         for chart in ("roofline", "ranking", "samples", "scopes")}
                on_gpus = [r for r in rows if "end_to_end" in r["scopes"]]
                self.assertEqual(marks, {"roofline": len(rows), "ranking": len(rows),
                                         "samples": len(rows), "scopes": len(on_gpus)})
                self.assertEqual(self.count(page, "[data-chart=ranking]"), panels(rows))
                self.assertEqual(self.count(page, "[data-chart=scopes]"), panels(on_gpus))
                self.assertEqual(self.count(page, "[data-chart=ranking] [data-ceiling]"),
                                 panels(rows))
                self.assertEqual(self.count(page, "[data-chart=samples] .sample"),
                                 sum(len(r["scopes"]["kernel"]["samples"]) for r in rows))
                self.assertEqual(self.count(page, "#all-rows [data-row]"), len(document["results"]))
                self.assertEqual(self.count(page, "[data-chart=scaling]"),
                                 2 if kind == "wide" else 0)
                self.assert_quiet(page)

    def test_scaling_has_one_line_per_contender(self):
        rows = [r for r in load("wide")["results"] if r["status"] == "ok"]
        page = self.open("wide")
        lines = {(r["op"], r["backend"], r["contender"]) for r in rows if "data" not in r["params"]}
        self.assertEqual(self.count(page, "[data-chart=scaling] .series"), len(lines))
        self.assertGreater(self.count(page, "[data-chart=scaling] [data-cache]"), 0)

    def test_rooflines_show_their_ceilings(self):
        page = self.open("usual")
        drawn = page.evaluate("[...document.querySelectorAll('[data-chart=roofline]')].map(f => "
                              "[...f.querySelectorAll('[data-ceiling]')].map(l => "
                              "l.dataset.ceiling))")
        self.assertTrue(all(lines[:2] == ["read", "copy"] for lines in drawn))
        self.assertTrue(all(lines[2:] in ([], ["to_device_pinned"]) for lines in drawn))
        self.assertEqual(sorted(map(len, drawn)), [2, 3, 3])
        self.assertGreater(self.count(self.open("wide"), "[data-ceiling=cache]"), 0)

    def test_rooflines_name_all(self):
        """Every contender of the largest size has its name, or a number that stands for it; the
        names of ceilings that lie closely together, copy above read, do not touch."""
        def copy_above_read(document):
            read = {c["device"]: c for c in document["ceilings"] if c["name"] == "read"}
            for ceiling in document["ceilings"]:
                if ceiling["name"] == "copy":
                    ceiling["gb_s"] = read[ceiling["device"]]["gb_s"] * 1.003

        script = """[...document.querySelectorAll('[data-chart=roofline]')].map(f => {
            const names = [...f.querySelectorAll('text[aria-hidden]')].map(t => t.textContent);
            const numbers = names.filter(t => /^\\d+$/.test(t)).map(Number);
            const listed = f.querySelectorAll('.numbered li').length;
            return [f.querySelectorAll('.leader + text:not([aria-hidden])').length, names.length,
                    numbers.sort((a, b) => a - b), listed]; })"""
        rows = [r for r in load("usual")["results"]
                if r["status"] == "ok" and r["params"].get("data") != "zipf"]
        for width in (1280, 360):
            page = self.open(variant("usual", copy_above_read), width=width)
            self.assertEqual(page.evaluate(self.OVERLAPPING % ("roofline", "text")), [], width)
            for roofs, names, numbers, listed in page.evaluate(script):
                self.assertGreaterEqual(roofs, 2)
                self.assertGreaterEqual(names, 3)
                self.assertEqual(numbers, list(range(1, listed + 1)))
            texts = page.evaluate("[...document.querySelectorAll('[data-chart=roofline] text, "
                                  ".numbered')].map(t => t.textContent).join(' ')")
            for row in rows:
                self.assertIn(row["contender"], texts)

    def test_labels_do_not_overlap(self):
        """No two labels of a roofline, nor two of a scaling chart, cover each other."""
        for kind, width in (("wide", 1280), ("wide", 380), ("usual", 800)):
            page = self.open(kind, width=width)
            for chart in ("roofline", "scaling", "params", "ranking"):
                found = page.evaluate(self.OVERLAPPING % (chart, "text[aria-hidden]"))
                self.assertEqual(found, [], (kind, width, chart))

    def test_hostile_text_stays_text(self):
        page = self.open("usual")
        self.assertEqual(self.count(page, "main b[onclick], main script"), 0)
        told = page.evaluate("document.querySelector('.alarm.failed .reason').textContent")
        self.assertIn('</script><b onclick="x">', told)
        self.assertIn("\u2028", told)
        self.assert_quiet(page)

    def test_wrong_rows_are_highlighted(self):
        page = self.open("usual")
        self.assertEqual(self.count(page, ".alarm.wrong li"), 1)
        self.assertIn("should be 0x9f3a0000",
                      page.evaluate("document.querySelector('.alarm.wrong').textContent"))
        self.assertEqual(self.count(page, "#all-rows tr.wrong .tag.wrong"), 1)
        self.assertEqual(self.count(self.open("tiny"), ".alarm"), 0)

    def test_theme_follows_the_system_and_the_button(self):
        for theme, other in (("light", "dark"), ("dark", "light")):
            page = self.open("tiny", theme=theme)
            page.evaluate("localStorage.clear()")
            page.reload()
            shown = "document.documentElement.dataset.theme"
            back = "getComputedStyle(document.body).backgroundColor"
            before = page.evaluate(back)
            self.assertEqual(page.evaluate(shown), theme)
            page.evaluate("document.getElementById('theme').click()")
            self.assertEqual(page.evaluate(shown), other)
            self.assertNotEqual(page.evaluate(back), before)
            page.evaluate("localStorage.clear()")
            self.assert_quiet(page)

    def test_rows_sort_and_filter(self):
        page = self.open("usual")
        column = self.titles(page).index("GB/s")
        rates = ("[...document.querySelectorAll('#all-rows tbody')].map(b => [...b"
                 f".querySelectorAll('tr.ok')].map(r => Number(r.children[{column}].textContent)))")
        head = f"[...document.querySelectorAll('#all-rows thead th')][{column}]"
        by_case = page.evaluate(rates)
        self.assertEqual(len(by_case), len({(r["op"], r["size"], r["params"].get("data"))
                                            for r in load("usual")["results"]}))
        page.evaluate(head + ".firstChild.click()")
        self.assertNotEqual(page.evaluate(rates), by_case)
        self.assertEqual(page.evaluate(rates), [sorted(case) for case in by_case])
        self.assertEqual(page.evaluate(head + ".getAttribute('aria-sort')"), "ascending")
        page.evaluate(head + ".firstChild.click()")
        self.assertEqual(page.evaluate(rates), [sorted(c, reverse=True) for c in by_case])
        page.evaluate("search.value = 'cuda PINNED'; search.dispatchEvent("
                      "new Event('input', {bubbles: true}))")
        expected = [r for r in load("usual")["results"]
                    if r["backend"] == "cuda" and r["memory"] == "pinned"]
        self.assertEqual(self.count(page, "#all-rows [data-row]"), len(expected))
        self.assertEqual(self.count(page, "#all-rows tbody"), len({r["op"] for r in expected}))
        self.assert_quiet(page)

    def test_the_wide_table_fits_or_shows_that_it_scrolls(self):
        box = "document.querySelector('#rows .scroll')"
        for kind, width, fits in (("usual", 1280, True), ("tiny", 1280, True),
                                  ("usual", 800, False), ("usual", 360, False)):
            page = self.open(kind, width=width)
            room = page.evaluate(f"{box}.clientWidth - {box}.scrollWidth")
            self.assertEqual(room >= 0, fits, (kind, width, room))
            shown = ("[...document.querySelector('#rows .wide').classList, getComputedStyle("
                     "document.querySelector('#rows .more')).display]")
            self.assertEqual(page.evaluate(shown), ["wide", "none"] if fits else
                             ["wide", "is-cut-right", "block"])
            if fits:
                continue
            page.evaluate(f"{box}.scrollLeft = 100000")
            page.settle()
            self.assertEqual(page.evaluate(shown), ["wide", "is-cut-left", "block"])
            # the names stay where they are
            self.assertEqual(page.evaluate(f"{box}.querySelector('td.who').getBoundingClientRect()"
                                           f".left >= {box}.getBoundingClientRect().left"), True)
            self.assert_quiet(page)

    def titles(self, page) -> list[str]:
        return page.evaluate("[...document.querySelectorAll('#all-rows thead th')].map(h => "
                             "h.textContent)")

    def test_headline_is_about_memory(self):
        page = self.open("tiny")

        def headline(*shares):  # percent of the ceiling, and whether the data fit into the cache
            groups = [{"isLargest": True,
                       "ok": [{"op": f"op{share}", "device": "a card", "cache_resident": cached,
                               "kernel": {"percent_of_ceiling": share, "gb_s": share / 10}}]}
                      for share, cached in shares]
            model = json.dumps({"rows": [g["ok"][0] for g in groups], "groups": groups})
            return page.evaluate(f"headline({model})")

        def headline_of_rows(*rows):  # of one group
            model = json.dumps({"rows": rows, "groups": [{"isLargest": True, "ok": rows}]})
            return page.evaluate(f"headline({model})")

        rows = [{"op": "a", "device": "a card", "cache_resident": False, "above_ceiling": share > 102,
                 "kernel": {"percent_of_ceiling": share}} for share in (119, 97)]
        memory = "of what the memory of a card gives"
        self.assertEqual(headline_of_rows(*rows), f"a reaches 97 % {memory}")
        self.assertEqual(headline_of_rows(rows[0]),
                         "a is above the ceiling of a card, which was measured too low")
        self.assertEqual(headline((300, True), (80, False), (70, False), (119, False)),
                         f"op80 reaches 80 % {memory}")
        self.assertEqual(headline((300, True), (119, False), (103, False)),
                         "op119 is above the ceiling of a card, which was measured too low")
        self.assertEqual(headline((300, True), (200, True)),
                         "op300 runs at 30.00 GB/s with its data in the cache of a card")

    def test_what_was_left_out_is_told_in_full(self):
        repeated = "the device has no shared virtual memory"  # already the reason of rows

        def remarked(document):
            document["host"]["remarks"] = ["passed over: banks: no size of it is 5x5",
                                           "unavailable: opencl: " + repeated]

        document, page = load("usual"), self.open(variant("usual", remarked))
        text = page.evaluate("document.getElementById('skipped').textContent")
        for row in document["results"]:
            told = f"{row['op']}.{row['backend']}.{row['contender']} {row['memory']}"
            if row["status"] == "skipped":
                self.assertIn(told, text)
                self.assertEqual(text.count(row["reason"]), 1)
        self.assertIn("opencl 1, an FPGA: the driver offers no compiler", text)
        self.assertIn("passed over: banks: no size of it is 5x5", text)
        self.assertEqual(self.count(self.open("tiny"), "#skipped"), 0)

    def test_before_and_after(self):
        def compared(document):
            pass

        def span(median, count=30):
            return {"median_ms": median, "low_ms": median * 0.99, "high_ms": median * 1.01,
                    "count": count}

        results = load("usual")["results"]
        rows = [{"row": k, "key": "not shown", "scope": "kernel", "change": change,
                 "old": span(median), "new": span(row["scopes"]["kernel"]["median_ms"]),
                 "reason": ""}
                for k, row in enumerate(results) if row["status"] == "ok"
                for median, change in [
                    (row["scopes"]["kernel"]["median_ms"] / (1.25 if k == 0 else 1),
                     "slower" if k == 0 else "same")]]
        raced = len(rows)
        broken = next(k for k, row in enumerate(results) if row["status"] == "failed")
        skipped = next(k for k, row in enumerate(results) if row["status"] == "skipped")
        rows += [{"row": skipped, "key": "", "scope": "", "change": "new", "old": None,
                  "new": None, "reason": "skipped: not raced"},
                 {"row": broken, "key": "", "scope": "", "change": "broken", "old": None,
                  "new": None, "reason": "failed: </script>"},
                 {"row": None, "key": "atax.cpu.old host", "scope": "", "change": "gone",
                  "old": None, "new": None, "reason": "it was ok"}]
        comparison = {"path": "old <b>.json", "threshold_percent": 5, "rows": rows}
        name = variant("usual", compared, comparison)
        for width in (1280, 360):
            page = self.open(name, width=width)
            marks = page.evaluate("[...document.querySelectorAll('[data-chart=comparison] .mark')]"
                                  ".map(m => m.getAttribute('aria-label'))")
            self.assertEqual(len(marks), raced)
            self.assertEqual(sum("change +25.0 %, slower" in mark for mark in marks), 1)
            self.assertEqual(sum("change +0.0 %, same" in mark for mark in marks), raced - 1)
            text = page.evaluate("document.getElementById('comparison').textContent")
            for words in (f"old <b>.json: 1 slower, 1 broken, {raced - 1} same, 1 gone",
                          "atax.cuda.transposed pinned, 8192x8192, f32: failed: </script>",
                          "atax.cpu.old host: it was ok"):
                self.assertIn(words, text)
            self.assertNotIn("not raced", text)
            self.assertEqual(page.evaluate(self.OVERLAPPING % ("comparison", "text")), [])
            self.assert_quiet(page)
        self.assertEqual(self.count(self.open("usual"), "#comparison-title"), 0)

    def test_empty_columns_are_hidden(self):
        more = ["memory", "end to end", "regs", "local B", "spill B", "occupancy"]
        self.assertEqual([t for t in self.titles(self.open("usual")) if t in more], more)
        self.assertEqual([t for t in self.titles(self.open("tiny")) if t in more], [])

    def test_kernel_details_are_shown(self):
        page = self.open("usual")
        row = ("[...document.querySelectorAll('#all-rows tbody')].find(b => b.textContent"
               ".includes('data zipf')).querySelector('tr.ok:nth-child(2)')")
        cells = page.evaluate(f"[...{row}.children].map(c => c.textContent)")
        titles = self.titles(page)
        self.assertIn("cuda.local", cells[titles.index("contender")])
        self.assertEqual([cells[titles.index(t)] for t in ("regs", "local B", "spill B",
                                                           "occupancy")],
                         ["40", "49152", "0", "50 %"])
        said = page.evaluate("[...document.querySelectorAll('[data-chart=ranking] .mark')].map(m "
                             "=> m.getAttribute('aria-label')).find(t => t.includes('cuda.local'))")
        for words in ("data uniform", "bins 256", "main kernel histogram_local", "registers 40",
                      "local memory 48 KiB", "spilled 0 B", "occupancy 50.0 %"):
            self.assertIn(words, said)

    def test_parameters_have_a_chart(self):
        rows = [r for r in load("usual")["results"] if "data" in r["params"]]
        page = self.open("usual")
        self.assertEqual(self.count(page, "[data-chart=params]"), 1)
        self.assertEqual(self.count(page, "[data-chart=params] .series"),
                         len({(r["backend"], r["contender"]) for r in rows}))
        self.assertEqual(self.count(page, "[data-chart=params] .mark"), len(rows))
        self.assertEqual(self.count(self.open("tiny"), "[data-chart=params]"), 0)

    def test_rows_are_grouped_by_case(self):
        page = self.open("usual")
        titles = page.evaluate("[...document.querySelectorAll('#ranking summary b')].map(b => "
                               "b.textContent)")
        self.assertEqual(titles, ["tokens u32", "atax f32", "histogram u8, data uniform",
                                  "histogram u8, data zipf"])
        self.assertEqual(self.count(page, "#ranking details[open]"), 3)
        self.assertEqual(self.count(page, "#ranking details.size"), 0)
        self.assertEqual(self.count(page, ".cards .card"), 4)

    def test_sizes_are_grouped(self):
        page = self.open("wide")
        sizes = page.evaluate("[...document.querySelectorAll('#ranking details.group')].map(d => "
                              "[...d.querySelectorAll('details.size')].map(s => [s.open, "
                              "s.querySelector('span').textContent]))")
        tokens = [[True, "talk:LARGE, 2147483648"], [False, "talk:STANDARD, 268435456"],
                  [False, "talk:SMALL, 4194304"]]
        self.assertEqual(sizes[0], tokens)
        self.assertEqual([len(s) for s in sizes], [3, 3, 0, 0])

    def test_ranking_shows_how_sure_it_is(self):
        """An interval; with fewer than six samples, or no interval, the samples; their number."""
        def few(document):
            for k, row in enumerate(r for r in document["results"] if r["status"] == "ok"):
                kernel = row["scopes"]["kernel"]
                if k == 0:
                    kernel["low_ms"] = kernel["high_ms"] = None
                kernel["samples"] = kernel["samples"][:4 - k if k < 4 else 6]

        for width in (1280, 360):
            page = self.open(variant("tiny", few), width=width)
            marks = "document.querySelectorAll('[data-chart=ranking] .mark')"
            self.assertEqual(page.evaluate(f"[...{marks}].map(m => m.querySelectorAll('.dot')"
                                           ".length)"), [4, 3])
            shown = page.evaluate("[...document.querySelectorAll('[data-chart=ranking] svg text')]"
                                  ".map(t => t.textContent)")
            for count in (4, 3):
                self.assertEqual(sum(f"{count} samples" in t or t == str(count) for t in shown), 1)
            self.assert_quiet(page)
        page = self.open("tiny")
        self.assertEqual(self.count(page, "[data-chart=ranking] [data-spread=interval]"), 2)
        self.assertEqual(self.count(page, "[data-chart=ranking] .dot"), 0)

    def test_the_ops_are_explained(self):
        page = self.open("usual")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#about details')].map(d => "
                                       "[d.dataset.op, d.open])"),
                         [["tokens", False], ["histogram", False]])
        text = page.evaluate("document.querySelector('[data-op=histogram]').textContent")
        for words in ("how often each value occurs", "Two paragraphs.", "Bytes moved: Every value",
                      "When it does not pay: With one", "In iron's own kernels: Nowhere.",
                      "how the values are spread: uniform, zipf", "local (cuda, opencl)",
                      "(improves on global)", "Measured: "):
            self.assertIn(words, text)
        other = page.evaluate("document.querySelector('[data-op=tokens]').textContent")
        self.assertIn("Measured: ", other)
        self.assertNotIn("how often each value occurs", other)
        self.assertEqual(self.count(page, "#about b[onclick], #about script"), 0)
        self.assertIn('</script><b onclick="x">', text)
        self.assert_quiet(page)

    def test_marks_can_be_focused_by_keyboard(self):
        page = self.open("tiny")
        page.evaluate("document.querySelector('[data-chart=ranking] .mark').focus()")
        self.assertFalse(page.evaluate("document.getElementById('tip').hidden"))
        page.press("ArrowDown")
        self.assertEqual(page.evaluate("document.activeElement.getAttribute('aria-label')")[:17],
                         "tokens.cpu.scalar")
        self.assertEqual(self.count(page, "[data-chart=ranking] .mark[tabindex='0']"), 1)
        self.assertEqual(self.count(page, "svg[role=group]:not([aria-label])"), 0)
        self.assert_quiet(page)

    @unittest.skipUnless(AXE.exists(), "web/node_modules has no axe-core; scripts/deps installs it")
    def test_axe_finds_nothing(self):
        """Everything unfolded; texts of charts, whose colours axe does not see, are in the second
        script."""
        findings = ("axe.run(document, {resultTypes: ['violations']}).then(r => "
                    "r.violations.map(v => [v.id, v.nodes.map(n => n.target.join(' '))]))")
        faint = """(() => {
            const bytes = c => c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255);
            const light = c => bytes(c).map(s => s <= .04045 ? s / 12.92 : ((s + .055) / 1.055) **
                2.4).reduce((sum, s, k) => sum + s * [.2126, .7152, .0722][k], .05);
            return [...document.querySelectorAll('svg text')].filter(t => {
                const paper = light(getComputedStyle(t.closest('figure, details, .card'))
                    .backgroundColor), ink = light(getComputedStyle(t).fill);
                return Math.max(ink, paper) / Math.min(ink, paper) < 4.5;
            }).map(t => t.textContent); })()"""
        for width, theme in ((1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")):
            for kind in ("usual", "tiny"):
                page = self.open(kind, width=width, theme=theme)
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                page.settle()
                page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
                self.assertEqual(page.evaluate(findings), [], (kind, width, theme))
                self.assertEqual(page.evaluate(faint), [], (kind, width, theme))
                self.assert_quiet(page)

    def test_nothing_is_wider_than_the_page(self):
        for width in (360, 400, 768, 1280, 1920):
            for kind in KINDS:
                page = self.open(kind, width=width)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width,
                                     (kind, width))
                self.assert_quiet(page)

    def test_paper_is_light_and_complete(self):
        """On paper everything is open and fits, and after printing the page is as it was."""
        page = self.open("wide", theme="dark", width=688)  # A4 without its margins
        folded = "[...document.querySelectorAll('details')].map(d => d.open)"
        before = page.evaluate(folded)
        self.assertIn(False, before)
        page.call("Emulation.setEmulatedMedia", media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.settle()
        self.assertEqual(page.evaluate("[...document.querySelectorAll('details:not(.about)')]"
                                       ".every(d => d.open)"), True)
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"),
                         "rgb(255, 255, 255)")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('.scroll')].filter(b => "
                                       "b.scrollWidth > b.clientWidth).length"), 0)
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(page.evaluate(folded), before)
        self.assert_quiet(page)

    def test_screenshots_and_pdf(self):
        looks = (("wide", 1280, "light"), ("wide", 400, "dark"), ("usual", 1280, "light"),
                 ("usual", 1280, "dark"), ("usual", 400, "light"), ("tiny", 1280, "light"),
                 ("tiny", 400, "dark"), ("usual", 1920, "light"))
        for kind, width, theme in looks:
            page = self.open(kind, width=width, theme=theme)
            path = FOLDER / f"{kind}-{width}-{theme}.png"
            page.screenshot(path)
            self.assertEqual(path.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        for kind in KINDS:
            page = self.open(kind, theme="dark")
            page.pdf(FOLDER / f"{kind}.pdf")
            self.assertEqual((FOLDER / f"{kind}.pdf").read_bytes()[:5], b"%PDF-")
            self.assert_quiet(page)


def missing() -> str:
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        return "python3-jsonschema is not installed"
    return "" if Browser.find() else "chromium is not installed"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: test_report.py FOLDER [TEST...]")
    FOLDER = Path(sys.argv.pop(1)).resolve()
    if missing():
        print(f"skipped: {missing()} (make deps installs it)")
        sys.exit(77)
    unittest.main()
