#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the reports written by tests/unit/test_report.c: the JSON with a parser and
docs/schema/arena-1.json, the CSV with a reader, the page in a browser.

    python3 tests/pages/test_report.py FOLDER      (the folder with wide.json, wide.html, ...)

Screenshots and a PDF are left beside the reports for inspection.  Without chromium or
python3-jsonschema the exit status is 77: skipped, with the reason.
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
FOLDER = Path(".")
KINDS = ("wide", "usual", "tiny")
TOP_KEYS = ["schema", "iron", "host", "devices", "ceilings", "results"]
ROW_KEYS = ("op contender backend memory device size dtype params peer useful_bytes cache_resident "
            "status reason verified baseline speedup scopes").split()
SCOPE_KEYS = ("median_ms mean_ms min_ms p95_ms noise_percent gb_s percent_of_ceiling "
              "samples").split()


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def load(kind: str) -> dict:
    text = (FOLDER / f"{kind}.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=refuse_constant)


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
                self.assertEqual(self.count(page, "#all-rows tbody tr"), len(document["results"]))
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

    def test_labels_do_not_overlap(self):
        """No two labels of a roofline, nor two of a scaling chart, cover each other."""
        script = """[...document.querySelectorAll('[data-chart=%s] svg')].flatMap(s => {
            const texts = [...s.querySelectorAll('text[aria-hidden]')].map(t => [t.textContent,
                t.getBoundingClientRect()]);
            return texts.flatMap(([a, p], k) => texts.slice(k + 1).filter(([, q]) =>
                p.left + 1 < q.right && q.left + 1 < p.right && p.top + 3 < q.bottom &&
                q.top + 3 < p.bottom).map(([b]) => a + ' / ' + b)); })"""
        for kind, width in (("wide", 1280), ("wide", 380), ("usual", 800)):
            page = self.open(kind, width=width)
            for chart in ("roofline", "scaling", "params", "ranking"):
                self.assertEqual(page.evaluate(script % chart), [], (kind, width, chart))

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
        rates = ("[...document.querySelectorAll('#all-rows tbody tr.ok')].map(r => "
                 f"Number(r.children[{column}].textContent))")
        head = f"[...document.querySelectorAll('#all-rows th')][{column}]"
        document_order = page.evaluate(rates)
        self.assertNotEqual(document_order, sorted(document_order))
        page.evaluate(head + ".firstChild.click()")
        self.assertEqual(page.evaluate(rates), sorted(document_order))
        self.assertEqual(page.evaluate(head + ".getAttribute('aria-sort')"), "ascending")
        page.evaluate(head + ".firstChild.click()")
        self.assertEqual(page.evaluate(rates), sorted(document_order, reverse=True))
        page.evaluate("search.value = 'cuda PINNED'; search.dispatchEvent("
                      "new Event('input', {bubbles: true}))")
        expected = [r for r in load("usual")["results"]
                    if r["backend"] == "cuda" and r["memory"] == "pinned"]
        self.assertEqual(self.count(page, "#all-rows tbody tr"), len(expected))
        self.assert_quiet(page)

    def titles(self, page) -> list[str]:
        return page.evaluate("[...document.querySelectorAll('#all-rows th')].map(h => "
                             "h.textContent)")

    def test_headline_is_about_memory(self):
        page = self.open("tiny")

        def headline(*shares):  # percent of the ceiling, and whether the data fit into the cache
            groups = [{"isLargest": True,
                       "ok": [{"op": f"op{share}", "device": "a card", "cache_resident": cached,
                               "kernel": {"percent_of_ceiling": share}}]}
                      for share, cached in shares]
            model = json.dumps({"rows": [g["ok"][0] for g in groups], "groups": groups})
            return page.evaluate(f"headline({model})")

        memory = "of what the memory of a card gives"
        self.assertEqual(headline((300, True), (80, False), (70, False)),
                         f"op80 reaches 80 % {memory}")
        self.assertEqual(headline((300, True), (200, True)),
                         f"op300, with its data in the cache, reaches 300 % {memory}")

    def test_empty_columns_are_hidden(self):
        more = ["parameters", "end to end", "regs", "local B", "spill B", "occupancy"]
        self.assertEqual([t for t in self.titles(self.open("usual")) if t in more], more)
        self.assertEqual([t for t in self.titles(self.open("tiny")) if t in more], [])

    def test_kernel_details_are_shown(self):
        page = self.open("usual")
        row = ("[...document.querySelectorAll('#all-rows tbody tr')].find(r => "
               "r.textContent.includes('cuda.local') && r.textContent.includes('zipf'))")
        cells = page.evaluate(f"[...{row}.children].map(c => c.textContent)")
        titles = self.titles(page)
        self.assertEqual([cells[titles.index(t)] for t in ("parameters", "regs", "local B",
                                                           "spill B", "occupancy")],
                         ["data zipf", "40", "49152", "0", "50 %"])
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
        self.assertEqual(self.count(page, ".cards .card"), 4)

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

    def test_nothing_is_wider_than_the_page(self):
        for width in (360, 400, 768, 1280, 1920):
            for kind in KINDS:
                page = self.open(kind, width=width)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width,
                                     (kind, width))
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
            page = self.open(kind)
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
