# SPDX-License-Identifier: MIT
"""Remote files: http://, https:// and s3:// wherever a file is read.

The servers are real ones on this machine: file_server.py, which fails on demand and checks
signatures, and s3rver (npm, tests/s3), which does not check those of version 4.  Whatever fails on the way, a seal is that of the file's bytes,
or there is none and one sentence says why; no credentials are ever printed.
"""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest
import urllib.parse
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from file_server import FileServer
from harness import REPO, SEED, TIMEOUT_S, IronTest, iron, npy, oracle, pack, start

S3 = REPO / "tests" / "s3"
TOKENS = [k * k * 7 % 50021 for k in range(150_000)]
DATA = pack(TOKENS, "u16")
SEAL = oracle.seal(TOKENS)
RAW = ("--dtype", "u16")
# Nothing of the machine's own settings.
CLEAN = {name: None for name in os.environ
         if name.startswith("AWS_") or name.lower().endswith("_proxy")}


class RemoteTest(IronTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        said = iron("sum", "s3://none", *RAW, env=CLEAN).message  # asks nobody
        if "libcurl" in said or "IRON_STATIC_COMMAND" in said:
            raise unittest.SkipTest(said.strip())

    def serve(self, data=DATA, **options) -> FileServer:
        server = FileServer({"/tokens.bin": data}, **options)
        self.addCleanup(server.stop)
        return server

    def run_clean(self, *args, env=None, **kwargs):
        return self.iron(*args, env={**CLEAN, "HOME": str(self.dir), **(env or {})}, **kwargs)

    def assert_seal(self, url, *options, seal=SEAL, name=None, **kwargs):
        result = self.run_clean("sum", url, *(options or RAW), **kwargs)
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(result.err, b"", str(result))
        self.assertEqual(result.text.splitlines()[0], f"{seal}  {name or url}", str(result))
        return result

    def refuse(self, url, says, *options, **kwargs):
        before = self.listing()
        result = self.run_clean("sum", url, *(options or RAW), **kwargs)
        self.assert_error_line(result, says)
        self.assertEqual(before, self.listing())
        return result


class Reading(RemoteTest):
    def test_ranges(self):
        server = self.serve()
        self.assert_seal(server.url())
        for path, headers in server.requests:
            if path == "/tokens.bin":
                self.assertRegex(headers["Range"], r"^bytes=\d+-\d+$")
                self.assertEqual(headers["Accept-Encoding"], "identity")

    def test_every_way_to_send_a_file(self):
        for serves in ("ranges", "whole", "chunked"):
            for count in (0, 1, 30_000, 150_000):
                with self.subTest(serves=serves, tokens=count):
                    server = self.serve(DATA[:2 * count], serves=serves)
                    self.assert_seal(server.url(), seal=oracle.seal(TOKENS[:count]))

    def test_every_command(self):
        server, local = self.serve(), self.write("tokens.bin", DATA)
        url = server.url()
        for args in (["stat", "FILE", *RAW, "--vocab", 50257], ["sniff", "FILE"], ["feed", "FILE", *RAW, "--backend", "cpu", "--seal"]):
            here, there = (self.run_clean(*[{"FILE": path}.get(a, a) for a in args], "--json")
                           for path in (local, url))
            self.assertEqual((here.code, there.code), (0, 0), str(there))
            here, there = json.loads(here.out), json.loads(there.out)
            if isinstance(here, list):
                here, there = here[0], there[0]
            for key in set(here) - {"file", "files", "seconds", "gb_per_s", "setup_seconds", "path",
                                    "bytes", "memory"}:
                self.assertEqual(here[key], there[key], (args, key))
        result = self.run_clean("diff", local, url, *RAW, "--json")
        self.assertEqual((result.code, json.loads(result.out)["equal"]), (0, True), str(result))

    def test_several_files_are_one_stream(self):
        server = self.serve()
        server.files = {"/a.bin": DATA[:100_000], "/c.bin": DATA[200_000:]}
        middle = self.write("b.bin", DATA[100_000:200_000])
        result = self.run_clean("feed", server.url("/a.bin"), middle, server.url("/c.bin"), *RAW,
                                "--backend", "cpu", "--seal", "--json")
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(json.loads(result.out)["seal"], SEAL)

    def test_manifest(self):
        server = self.serve()
        url = server.url()
        made = self.run_clean("sum", url, *RAW, "--manifest", "m")
        self.assertEqual(made.code, 0, str(made))
        checked = self.run_clean("check", "m")
        self.assertEqual(checked.code, 0, str(checked))
        changed = bytearray(DATA)
        changed[100_001] ^= 1
        server.files["/tokens.bin"] = bytes(changed)
        checked = self.run_clean("check", "m")
        self.assertEqual(checked.code, 1, str(checked))

    def test_list(self):
        server = self.serve()
        made = self.run_clean("sum", server.url(), *RAW)
        self.write("list", made.out)
        self.assertEqual(self.run_clean("check", "list").code, 0)
        server.files["/tokens.bin"] = DATA[:-2]
        self.assertEqual(self.run_clean("check", "list").code, 1)

    def test_formats(self):
        array = npy(TOKENS, "<u2", "H")
        for serves in ("ranges", "whole"):
            for data, options in ((array, ("--format", "npy")), (array, ("--format", "auto")),
                                  (gzip.compress(DATA, mtime=0), RAW)):
                with self.subTest(serves=serves, options=options):
                    server = self.serve(data, serves=serves)
                    self.assert_seal(server.url(), *options)

    def test_odd_addresses(self):
        server = self.serve()
        for path in ("/a b.bin", "/\u00e9.bin", "/a%2Fb.bin", "/a/../b.bin", "/a//c.bin", "/d+e&f=g.bin"):
            sent = urllib.parse.quote(path, safe="/%+&=")
            server.files[sent] = DATA
            self.assert_seal(server.url(path))
        server.files["/query.bin"] = DATA
        self.assert_seal(server.url("/query.bin?download=true"))
        self.assertIn("/query.bin?download=true", [path for path, _ in server.requests])

    def test_missing_library(self):
        self.refuse("http://127.0.0.1:1/x", "libcurl", env={"IRON_CURL_LIBRARY": "none"})
        self.refuse("s3://bucket/x", "libcurl", env={"IRON_CURL_LIBRARY": "none"})


class Failing(RemoteTest):
    """What goes wrong on the way."""

    def test_what_passes(self):
        busy = {"Retry-After": "0"}
        for failures in (["drop"], ["ok", "drop"], [(503, busy)], ["ok", (503, busy)], [(429, busy)] * 3,
                         [(500, busy), (502, busy), (504, busy), (408, busy)],
                         ["ok", ("cut", 1000)], ["ok", ("cut", 0)], ["ok", ("short", 70_000)],
                         ["ok", ("cut", 50_000), ("cut", 50_000), (503, busy)], [("cut", 100)]):
            with self.subTest(failures=failures):
                self.assert_seal(self.serve(failures=failures).url())

    def test_many_cuts(self):
        """Progress is never lost: each transfer may be cut, as long as it brings something."""
        rng = random.Random(SEED)
        cuts = [("cut", rng.randrange(1, 40_000)) for _ in range(12)]
        self.assert_seal(self.serve(failures=["ok"] + cuts).url())

    def test_what_does_not_pass(self):
        busy = {"Retry-After": "0"}
        for failures, says in (([(503, busy)] * 40, "HTTP 503.*try again later"),
                               (["ok"] + [(429, busy)] * 40, "HTTP 429.*try again later"),
                               ([(401, {})] * 9, "HTTP 401.*credentials"),
                               ([(403, {})] * 9, "HTTP 403.*credentials"),
                               ([(410, {})] * 9, "not found.*HTTP 410"),
                               ([(400, {})] * 9, "HTTP 400"),
                               (["ok"] + ["wrong range"] * 9, "range from byte"),
                               (["ok"] + ["no range"] * 9, "Content-Range"),
                               (["wrong range"] * 9, "range from byte 1, not from 0"),
                               (["ok", "changed"], "changed while being read"),
                               (["ok", "grown"], "changed while being read"),
                               (["ok"] + [(404, {})] * 9, "not found.*HTTP 404")):
            with self.subTest(failures=failures[:2]):
                server = self.serve(failures=failures)
                result = self.refuse(server.url(), says)
                self.assertIn(server.url(), result.message)

    def test_refusals_are_not_repeated(self):
        server = self.serve()
        self.refuse(server.url("/other.bin"), "not found.*404")
        self.assertEqual([path for path, _ in server.requests].count("/other.bin"), 1)

    def test_change_without_tags(self):
        server = self.serve(failures=["ok", "changed"])
        server.etags = False
        self.refuse(server.url(), "changed while being read")

    def test_tag_is_sent(self):
        server = self.serve()
        self.assert_seal(server.url())
        matches = [headers.get("If-Match") for path, headers in server.requests
                   if path == "/tokens.bin"]
        self.assertEqual(set(matches[1:]), {'"v1"'})

    def test_stream_that_breaks_off(self):
        for serves in ("whole", "chunked"):
            with self.subTest(serves=serves):
                server = self.serve(serves=serves, failures=["ok", ("cut", 200_000)])
                self.refuse(server.url(), "broke off after \\d+ bytes.*no ranges")
                server = self.serve(serves=serves, failures=["ok", "drop"])
                self.assert_seal(server.url())

    def test_stream_without_end(self):
        self.refuse(self.serve(serves="close").url(), "neither a length nor chunks")
        self.refuse(self.serve(DATA[:100], serves="close").url(), "neither a length nor chunks")

    def test_nobody_listens(self):
        self.refuse("http://127.0.0.1:1/tokens.bin", "http://127.0.0.1:1/tokens.bin.*connect")

    def test_interrupt(self):
        server = self.serve(failures=["ok"] + ["stall"] * 50)
        with start("sum", server.url(), *RAW, env=CLEAN, cwd=self.dir, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE) as command:
            while len(server.requests) < 2 and command.poll() is None:
                time.sleep(0.01)
            command.send_signal(signal.SIGINT)
            out, _ = command.communicate(timeout=TIMEOUT_S)
        self.assertNotEqual(command.returncode, 0)
        self.assertEqual(out, b"")


class Redirects(RemoteTest):
    def test_followed_once(self):
        server = self.serve()
        server.redirects["/first.bin"] = "/second.bin"
        server.redirects["/second.bin"] = server.url("/tokens.bin?sig=1")
        self.assert_seal(server.url("/first.bin"))
        self.assertEqual([path for path, _ in server.requests].count("/first.bin"), 1)

    def test_expired_target(self):
        """An address that was redirected to is asked for again when it is refused."""
        server = self.serve(failures=["ok", "ok", (403, {})])
        server.redirects["/first.bin"] = "/tokens.bin"
        self.assert_seal(server.url("/first.bin"))
        self.assertEqual([path for path, _ in server.requests].count("/first.bin"), 2)

    def test_refused(self):
        server = self.serve()
        server.redirects = {"/loop": "/loop", "/file": "file:///etc/passwd", "/ftp": "ftp://127.0.0.1/x"}
        self.refuse(server.url("/loop"), "redirect")
        self.refuse(server.url("/file"), "protocol")
        self.refuse(server.url("/ftp"), "protocol")

    def test_credentials_stay(self):
        """Neither a user's password nor a signed address is given to another host."""
        other = self.serve()
        server = self.serve(user="me:pass word")
        # another name of the same machine, since libcurl compares names and ports
        server.redirects["/away.bin"] = f"http://localhost:{other.server_address[1]}/tokens.bin"
        url = server.url("/away.bin", "me:pass%20word@")
        self.assert_seal(url, name=server.url("/away.bin"))
        self.assertTrue(any("Authorization" in headers for _, headers in server.requests))
        self.assertFalse(any("Authorization" in headers for _, headers in other.requests))


class Credentials(RemoteTest):
    def assert_hidden(self, result):
        for secret in ("hunter2", "abcdef", "me:"):
            self.assertNotIn(secret, result.text + result.message)

    def test_user_and_password(self):
        server = self.serve(user="me:hunter2")
        self.assert_hidden(self.assert_seal(server.url(user="me:hunter2@"), name=server.url()))
        self.refuse(server.url(), "HTTP 401.*credentials")
        self.assert_hidden(self.refuse(server.url(user="me:hunter2x@"), "HTTP 401.*user and password"))

    def test_signed_address(self):
        server = self.serve()
        url = server.url("/tokens.bin?X-Amz-Date=1&X-Amz-Signature=abcdef")
        self.assert_hidden(self.assert_seal(url, name=server.url()))
        self.assertTrue(all("abcdef" in path for path, _ in server.requests
                            if path.startswith("/tokens.bin")))
        self.assert_hidden(self.refuse(server.url("/other.bin?sig=abcdef"), "not found"))
        self.assert_hidden(self.refuse("http://me:hunter2@127.0.0.1:1/x?sig=abcdef", "cannot be read"))

    def test_nothing_is_stored(self):
        server = self.serve()
        url = server.url("/tokens.bin?sig=abcdef", "me:hunter2@")
        self.assertEqual(self.run_clean("sum", url, *RAW, "--manifest", "m").code, 0)
        stored = (self.dir / "m").read_bytes()
        self.assertNotIn(b"abcdef", stored)
        self.assertNotIn(b"hunter2", stored)
        self.assertIn(server.url().encode(), stored)
        result = self.run_clean("sum", url, *RAW, "--json")
        self.assert_hidden(result)


class Secure(RemoteTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("openssl"):
            raise unittest.SkipTest("openssl is not installed")

    def setUp(self):
        super().setUp()
        self.certificate = (self.dir / "cert.pem", self.dir / "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.certificate[1],
                        "-out", self.certificate[0]], check=True, capture_output=True)

    def test_certificates(self):
        server = self.serve(certificate=self.certificate)
        trusted = {"SSL_CERT_FILE": str(self.certificate[0])}
        self.assert_seal(server.url(), env=trusted)
        self.refuse(server.url(), "SSL_CERT_FILE", env={"SSL_CERT_FILE": None})

    def test_never_to_http(self):
        plain, server = self.serve(), self.serve(certificate=self.certificate)
        server.redirects["/down.bin"] = plain.url()
        self.refuse(server.url("/down.bin"), "protocol",
                    env={"SSL_CERT_FILE": str(self.certificate[0])})
        self.assertEqual(plain.requests, [])


class Signatures(RemoteTest):
    KEYS = ("tokens.bin", "a/b/c.bin", "with space+plus.bin", "\u00e9&=?#%.bin", "(~!*').bin",
            "a=b,c;d@e:f$[].bin", "%41.bin", "a//b/./c/../d.bin")

    def signed(self, **options):
        server = self.serve(keys={"AKID": "s/cr+t"}, **options)
        return server, {"AWS_ENDPOINT_URL": server.url("/"), "AWS_ACCESS_KEY_ID": "AKID",
                        "AWS_SECRET_ACCESS_KEY": "s/cr+t"}

    def test_keys(self):
        server, env = self.signed()
        for key in self.KEYS:
            server.files["/bucket/" + urllib.parse.quote(key, safe="/~")] = DATA
            self.assert_seal(f"s3://bucket/{key}", env=env)

    def test_region_and_token(self):
        server, env = self.signed(region="eu-west-1", token="IQo/b3+=")
        server.files["/bucket/t.bin"] = DATA
        env = {**env, "AWS_SESSION_TOKEN": "IQo/b3+="}
        self.refuse("s3://bucket/t.bin", "HTTP 403 AuthorizationHeaderMalformed.*AWS_REGION", env=env)
        self.assert_seal("s3://bucket/t.bin", env={**env, "AWS_REGION": "eu-west-1"})
        self.assert_seal("s3://bucket/t.bin", env={**env, "AWS_DEFAULT_REGION": "eu-west-1"})

    def test_wrong_secret(self):
        server, env = self.signed()
        server.files["/bucket/t.bin"] = DATA
        result = self.refuse("s3://bucket/t.bin", "HTTP 403 SignatureDoesNotMatch.*AWS keys",
                             env={**env, "AWS_SECRET_ACCESS_KEY": "hunter2"})
        self.assertNotIn("hunter2", result.message)
        self.refuse("s3://bucket/t.bin", "HTTP 403 InvalidAccessKeyId",
                    env={**env, "AWS_ACCESS_KEY_ID": "other"})
        self.refuse("s3://bucket/t.bin", "HTTP 403 AccessDenied.*no AWS keys",
                    env={**env, "AWS_ACCESS_KEY_ID": None})

    def test_retries_are_signed(self):
        server, env = self.signed(failures=["drop", "ok", ("cut", 1000), (503, {"Retry-After": "0"})])
        server.files["/bucket/t.bin"] = DATA
        self.assert_seal("s3://bucket/t.bin", env=env)


class S3Server:
    """s3rver in a folder of its own, with two buckets."""

    def __init__(self, folder):
        script = ("const S3rver = require('s3rver');"
                  "new S3rver({port: 0, address: '127.0.0.1', silent: true, directory: process.argv[1],"
                  "allowMismatchedSignatures: false, configureBuckets: [{name: 'tokens'}, {name: 'dots.in.name'}]})"
                  ".run().then(a => console.log(a.port));")
        self.process = subprocess.Popen(["node", "-e", script, str(folder)], cwd=S3,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.endpoint = f"http://127.0.0.1:{line.strip()}"

    def put(self, bucket, key, data):
        connection = HTTPConnection(self.endpoint.split("//")[1])
        connection.request("PUT", f"/{bucket}/" + urllib.parse.quote(key, safe="/~"), body=data)
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status == 200, response.status

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class WithS3rver(RemoteTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("node") or not (S3 / "node_modules" / "s3rver").is_dir():
            raise unittest.SkipTest("s3rver is not installed (scripts/deps test)")

    def setUp(self):
        super().setUp()
        self.server = S3Server(self.dir / "s3")
        self.addCleanup(self.server.stop)
        self.env = {"AWS_ENDPOINT_URL_S3": self.server.endpoint, "AWS_ACCESS_KEY_ID": "S3RVER",
                    "AWS_SECRET_ACCESS_KEY": "S3RVER", "AWS_REGION": "eu-west-1"}

    def test_keys(self):
        keys = ["tokens.bin", "a/b/c.bin", "with space+plus.bin", "\u00e9&=?#%.bin", "(~!*').bin", "a=b,c;d@e:f$.bin"]
        for bucket in ("tokens", "dots.in.name"):
            for key in keys:
                with self.subTest(bucket=bucket, key=key):
                    self.server.put(bucket, key, DATA)
                    self.assert_seal(f"s3://{bucket}/{key}", env=self.env)

    def test_credentials(self):
        self.server.put("tokens", "t.bin", DATA)
        url = "s3://tokens/t.bin"
        self.assert_seal(url, env={**self.env, "AWS_SESSION_TOKEN": "a/b+c=="})
        unsigned = {"AWS_ENDPOINT_URL": self.server.endpoint}
        self.assert_seal(url, env=unsigned)  # s3rver lets everybody read
        self.refuse(url, "HTTP 403 InvalidAccessKeyId", env={**self.env, "AWS_ACCESS_KEY_ID": "other"})
        self.refuse("s3://tokens/none.bin", "not found.*HTTP 404", env=self.env)
        self.refuse("s3://me:hunter2@tokens/t.bin", "AWS_ACCESS_KEY_ID", env=self.env)
        self.refuse("s3://tokens", "s3://bucket/key", env=self.env)

    def test_profile(self):
        self.server.put("tokens", "t.bin", DATA)
        self.write(".aws/credentials", b"[work]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n")
        self.write(".aws/config", b"[profile work]\nregion = eu-west-1\nendpoint_url = "
                   + self.server.endpoint.encode() + b"\n")
        self.assert_seal("s3://tokens/t.bin", env={"AWS_PROFILE": "work"})
        self.refuse("s3://tokens/t.bin", "AWS_PROFILE", env={"AWS_PROFILE": "home"})

    def test_folder(self):
        third = len(DATA) // 3 // 2 * 2
        for k, name in enumerate(("part-2.bin", "part-10.bin", "part-1.bin")):
            self.server.put("tokens", f"set/{name}", DATA[k * third:(k + 1) * third])
        self.server.put("tokens", "settle.bin", DATA)
        parts = [DATA[2 * third:], DATA[:third], DATA[third:2 * third]]  # in natural order
        folder = self.run_clean("feed", "s3://tokens/set/", *RAW, "--backend", "cpu", "--seal", "--json", env=self.env)
        self.assertEqual(folder.code, 0, str(folder))
        local = [self.write(f"{k}.bin", part) for k, part in enumerate(parts)]
        here = self.run_clean("feed", *local, *RAW, "--backend", "cpu", "--seal", "--json")
        self.assertEqual(json.loads(folder.out)["seal"], json.loads(here.out)["seal"])


class Pages(BaseHTTPRequestHandler):
    """A bucket of 25 objects whose list has pages of ten."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(parts.query)
        self.server.asked.append(parts.query)
        if "list-type" in query:
            keys = sorted(f"set/<{k}>&.bin" for k in range(25))
            first = int(query.get("continuation-token", ["t+0"])[0][2:])
            page, rest = keys[first:first + 10], first + 10 < len(keys)
            shown = [key.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&#62;") for key in page]
            body = ('<?xml version="1.0"?><ListBucketResult>'
                    + f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
                    + (f"<NextContinuationToken>t+{first + 10}</NextContinuationToken>" if rest else "")
                    + "".join(f"<Contents><Key>{key}</Key></Contents>" for key in shown)
                    + "</ListBucketResult>").encode()
        else:
            key = urllib.parse.unquote(parts.path)
            body = pack([int(key[key.index("<") + 1:key.index(">")])] * 10, "u16") if "<" in key else None
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")


class Lists(RemoteTest):
    def test_pages(self):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        server.daemon_threads, server.asked = True, []
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}"}
        result = self.run_clean("feed", "s3://bucket/set/", *RAW, "--backend", "cpu", "--seal", "--json", env=env)
        self.assertEqual(result.code, 0, str(result))
        expected = [k for k in range(25) for _ in range(10)]
        self.assertEqual(json.loads(result.out)["seal"], oracle.seal(expected))
        self.assertEqual([query for query in server.asked if "list-type" in query],
                         ["list-type=2&prefix=set%2F", "continuation-token=t%2B10&list-type=2&prefix=set%2F",
                          "continuation-token=t%2B20&list-type=2&prefix=set%2F"])
