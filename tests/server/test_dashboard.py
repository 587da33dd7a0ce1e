# SPDX-License-Identifier: MIT
"""The dashboard over HTTP: headers, encodings, entity tags, and that it uses no other host.

What the page does in a browser is tested elsewhere.  A server that was built without it must say so;
IRON_TEST_DASHBOARD selects which of the two is expected; if it is not set, both are accepted.
"""

import gzip
import os
import re

from api import ServerTest

TOKEN = "open-sesame-0123456789abcdef"
PARTS = {"/": "text/html; charset=utf-8", "/dashboard.js": "text/javascript; charset=utf-8",
         "/dashboard.css": "text/css; charset=utf-8"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
# XML namespaces look like addresses but are never requested.
NAMESPACE = b"http://www.w3.org/"
COMMENT = re.compile(rb"/\*!.*?\*/", re.DOTALL)  # licences, which name a library's origin


class Dashboard(ServerTest):
    def setUp(self):
        super().setUp()
        token_file = self.write("token", TOKEN.encode() + b"\n")
        token_file.chmod(0o600)
        self.instance = self.serve("--token-file", token_file)
        is_there = self.ask("/").status == 200
        expected = os.environ.get("IRON_TEST_DASHBOARD")
        if expected:
            self.assertEqual(is_there, expected == "1", str(self.ask("/")))
        self.is_there = is_there

    def ask(self, target, method="GET", **headers):
        pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return self.raw(self.instance, method, target, pairs)

    def parts(self):
        """The targets; none if the page is left out, in which case each must report it."""
        if self.is_there:
            return PARTS
        for target in PARTS:
            answer = self.ask(target)
            self.assert_problem(answer, "no-such-path", "built without the dashboard, since [a-z]")
            self.assertEqual(self.ask(target, "HEAD").status, 404)
        return {}

    def test_dashboard_needs_no_token(self):
        for target, kind in self.parts().items():
            answer = self.ask(target)
            self.assertEqual((answer.status, answer.get("content-type")), (200, kind), target)
            self.assertGreater(len(answer.body), 100, target)
        self.assert_problem(self.ask("/v1/engines"), "unauthorized")

    def test_headers(self):
        for target in self.parts():
            for encoding in ("identity", "gzip"):
                answer = self.ask(target, Accept_Encoding=encoding)
                for name, value in (("content-security-policy", POLICY), ("vary", "Accept-Encoding"),
                                    ("referrer-policy", "no-referrer"),
                                    ("cache-control", "no-cache"),
                                    ("x-content-type-options", "nosniff")):
                    self.assertEqual(answer.get(name), value, (target, encoding, name))

    def test_gzip_and_identity_have_the_same_content(self):
        for target in self.parts():
            plain = self.ask(target)
            self.assertIsNone(plain.get("content-encoding"), target)
            packed = self.ask(target, Accept_Encoding="br, gzip;q=0.8")
            self.assertEqual(packed.get("content-encoding"), "gzip", target)
            self.assertEqual(gzip.decompress(packed.body), plain.body, target)
            for refusing in ("identity", "br", "gzip;q=0", "gzip;q=0, *", "gzip;q=0.1, identity"):
                answer = self.ask(target, Accept_Encoding=refusing)
                self.assertIsNone(answer.get("content-encoding"), (target, refusing))
                self.assertEqual(answer.body, plain.body, (target, refusing))

    def test_tags(self):
        for target in self.parts():
            tags = {}
            for encoding in ("identity", "gzip"):
                tag = tags[encoding] = self.ask(target, Accept_Encoding=encoding).get("etag")
                for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                    again = self.ask(target, Accept_Encoding=encoding, If_None_Match=known)
                    self.assertEqual((again.status, again.body, again.get("etag")),
                                     (304, b"", tag), (target, encoding, known))
                    self.assertEqual(again.get("vary"), "Accept-Encoding")
            self.assertNotEqual(tags["identity"], tags["gzip"], target)
            other = self.ask(target, Accept_Encoding="gzip", If_None_Match=tags["identity"])
            self.assertEqual(other.status, 200, target)

    def test_head(self):
        for target in self.parts():
            for encoding in ("identity", "gzip"):
                full = self.ask(target, Accept_Encoding=encoding)
                head = self.ask(target, "HEAD", Accept_Encoding=encoding)
                self.assertEqual((head.status, head.body), (200, b""), target)
                for name in ("content-length", "content-type", "content-encoding", "etag"):
                    self.assertEqual(head.get(name), full.get(name), (target, name))

    def test_other_methods_and_queries(self):
        for target in PARTS:
            for method in ("POST", "PUT", "DELETE"):
                answer = self.ask(target, method)
                self.assert_problem(answer, "method-not-allowed")
                self.assertEqual(answer.get("allow"), "GET, HEAD")
            self.assert_problem(self.ask(target + "?x=1"), "bad-query")

    def test_page_is_self_contained(self):
        """No other host is used, and nothing violates the content security policy."""
        for target in self.parts():
            body = COMMENT.sub(b"", self.ask(target).body).replace(NAMESPACE, b"")
            self.assertEqual(re.findall(rb"https?://[^\s\"'<>)]*|[\"'(=]//[\w.]+", body), [], target)
        if self.is_there:
            page = self.ask("/").body.decode()
            self.assertEqual(re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page), [])
            named = re.findall(r'(?:src|href)="([^"]*)"', page)
            self.assertEqual({n for n in named if not n.startswith(("data:", "#"))},
                             {"/dashboard.js", "/dashboard.css", "/report"})

    def test_other_files_are_not_found(self):
        for target in ("/index.html", "/dashboard.html", "/dashboard.js.gz", "/dashboard.js.map",
                       "/dashboard", "/web/package.json"):
            self.assert_problem(self.ask(target, Authorization=f"Bearer {TOKEN}"), "no-such-path")
