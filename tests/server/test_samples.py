# SPDX-License-Identifier: MIT
"""The samples in deploy: Prometheus' tools check its files and the dashboard's expressions, and
every metric they use exists in the server."""

import json
import re
import shutil
import subprocess

import exposition
from api import ServerTest
from harness import REPO, TIMEOUT_S, environment, pack

import ledger as book

PROMETHEUS = REPO / "deploy" / "prometheus"
GRAFANA = REPO / "deploy" / "grafana"
# Metrics of the server; those that Prometheus itself adds (up, ALERTS) are excluded.
METRIC = re.compile(r"\b((?:iron|process)_[a-z0-9_]+)\b")
RECORDED = re.compile(r"\b(iron:[a-z0-9_:]+)\b")


def rules_text() -> str:
    return (PROMETHEUS / "iron.rules.yml").read_text(encoding="utf-8")


def rule_expressions() -> list:
    """Expressions of rules and alerts, including all lines of folded ones (`>`)."""
    found = re.findall(r"^ +expr: (?:>\n((?: {10}.*\n)+)|(.*)\n)", rules_text(), re.MULTILINE)
    return [" ".join((folded or plain).split()) for folded, plain in found]


def dashboard() -> dict:
    return json.loads((GRAFANA / "iron.json").read_text(encoding="utf-8"))


def dashboard_expressions() -> list:
    page = dashboard()
    return [t["expr"] for p in page["panels"] for t in p["targets"]] + \
           [a["expr"] for a in page["annotations"]["list"]]


class Promtool(ServerTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("promtool"):
            self.skipTest("no promtool here (Debian: prometheus)")
        for path in PROMETHEUS.iterdir():
            shutil.copy(path, self.dir)

    def promtool(self, *args, code=0):
        done = subprocess.run(["promtool", *args], cwd=self.dir, capture_output=True, text=True,
                              env=environment(), timeout=4 * TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_configuration(self):
        self.promtool("check", "config", "prometheus.yml", code=1)  # without the token
        self.write("iron-token", b"token\n")
        self.promtool("check", "config", "prometheus.yml")

    def test_rules(self):
        self.promtool("check", "rules", "iron.rules.yml")
        self.promtool("test", "rules", "iron.rules_test.yml")

    def test_tests_of_the_rules_can_fail(self):
        """The rule tests cover each alert and fail for renamed ones."""
        alerts = re.findall(r"- alert: (\w+)", rules_text())
        self.assertGreater(len(alerts), 10)
        tests = (PROMETHEUS / "iron.rules_test.yml").read_text(encoding="utf-8")
        for alert in alerts:
            self.assertGreaterEqual(tests.count(f"# {alert}: "), 2, f"{alert} is not tested")
        self.write("iron.rules.yml", rules_text().replace("alert: Iron", "alert: Other").encode())
        missed = self.promtool("test", "rules", "iron.rules_test.yml", code=1)
        for alert in alerts:
            self.assertIn(f'expr: "ALERTS{{alertname=\\"{alert}\\"', missed)

    def test_dashboard_expressions(self):
        """Converted to a rules file, because promtool reads only those."""
        rules = [{"record": f"dashboard:{k}", "expr": self.without_variables(e)}
                 for k, e in enumerate(dashboard_expressions())]
        self.write("dashboard.yml",
                   json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}).encode())
        self.promtool("check", "rules", "dashboard.yml")

    @staticmethod
    def without_variables(expression) -> str:
        found = expression.replace("$instance", ".*")
        assert "$" not in found, expression
        return found


class Names(ServerTest):
    def test_every_metric_exists(self):
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=1)
        self.fed(api, "e", pack([1]))
        api.call("POST", "/v1/runs/r/steps", book.header(0, 1))
        api.get("/v1/runs/r/findings")  # waits until it is checked
        families = exposition.parse(api.get("/metrics").body.decode())
        there = set(families) | {name for f in families.values() for name, _ in f["samples"]}
        recorded = set(re.findall(r"record: (\S+)", rules_text()))
        for expression in rule_expressions() + dashboard_expressions():
            with self.subTest(expression=expression):
                asked = set(METRIC.findall(expression))
                self.assertTrue(asked or RECORDED.search(expression) or "up{" in expression)
                self.assertEqual(asked - there, set())
                self.assertEqual(set(RECORDED.findall(expression)) - recorded, set())

    def test_labels_and_reasons(self):
        """Problem kinds used in rules exist."""
        kinds = set(re.findall(r'X\("([a-z-]+)"',
                               (REPO / "src/server/http.h").read_text(encoding="utf-8")))
        found = re.findall(r'reason=~?"([^"]+)"', rules_text())
        self.assertGreater(len(found), 2)
        for reasons in found:
            self.assertLessEqual(set(reasons.split("|")), kinds)


class Dashboard(ServerTest):
    def test_shape(self):
        page = dashboard()
        self.assertGreater(len(page["panels"]), 10)
        self.assertEqual(len({p["id"] for p in page["panels"]}), len(page["panels"]))
        places = set()
        for panel in page["panels"]:
            self.assertTrue(panel["title"] and panel["description"], panel["id"])
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                     for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & places, f"{panel['title']} lies on another")
            places |= cells

    def test_provisioned_files_exist(self):
        providers = (GRAFANA / "provisioning/dashboards/iron.yml").read_text(encoding="utf-8")
        folder = re.search(r"path: (\S+)", providers)[1]
        readme = (REPO / "deploy/README.md").read_text(encoding="utf-8")
        self.assertIn(f"deploy/grafana/iron.json {folder}/", readme)
        for path in re.findall(r"deploy/[\w./-]+[\w]", readme):
            self.assertTrue((REPO / path).exists(), path)
