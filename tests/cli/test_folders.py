# SPDX-License-Identifier: MIT
"""Folders on servers, and files beside remote files: MDS and save_to_disk folders at an address, the
index of a remote Megatron file, and what a server without ranges can and cannot give.
"""

import contextlib
import http.server
import threading
import urllib.parse

from containers import hf_state, mds_folder
from harness import IronTest, oracle, pack
from test_formats import megatron_index


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, has_body):
        server = self.server
        server.asked.append(self.path)
        path = server.folder / self.path.lstrip("/")
        if "list-type=2" in self.path:
            return self.reply(200, self.list_bucket(), {})
        if "?" in self.path or not path.is_file():
            return self.reply(404, b"", {})
        data = path.read_bytes()
        wanted = self.headers.get("Range")
        headers = {"ETag": f'"{path.stat().st_mtime_ns}"'}
        if server.has_ranges:
            headers["Accept-Ranges"] = "bytes"
        if not (wanted and server.has_ranges):
            return self.reply(200, data, headers, has_body)
        first, last = wanted.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last) if last else len(data), len(data) - 1)
        if first >= len(data):
            return self.reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return self.reply(206, data[first:last + 1], headers, has_body)

    def list_bucket(self):
        """S3's list of the keys below a prefix, in a bucket that is a folder here."""
        target = urllib.parse.urlsplit(self.path)
        prefix = urllib.parse.parse_qs(target.query)["prefix"][0]
        bucket = self.server.folder / target.path.strip("/")
        files = [path for path in bucket.rglob("*") if path.is_file()]
        keys = sorted(str(path.relative_to(bucket)) for path in files)
        rows = "".join(f"<Contents><Key>{key}</Key><Size>{(bucket / key).stat().st_size}</Size></Contents>"
                       for key in keys if key.startswith(prefix))
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()

    def reply(self, status, body, headers, has_body=True):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if has_body:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # the command may hang up in the middle of a response


class RemoteFolders(IronTest):
    def setUp(self):
        super().setUp()
        self.rows = [oracle.gen(k, 40 + k, 50257) for k in range(9)]
        self.tokens = [token for row in self.rows for token in row]

    @contextlib.contextmanager
    def served(self, has_ranges=True):
        server = Server(("127.0.0.1", 0), Handler)
        server.folder, server.has_ranges, server.asked = self.dir, has_ranges, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            self.asked = server.asked
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def mds(self, name, **kwargs):
        shards = [[{"tokens": row} for row in self.rows[k:k + 3]] for k in (0, 3, 6)]
        mds_folder(self.dir / name, shards, {"tokens": "ndarray:uint16"}, **kwargs)

    def assert_sums(self, local, address):
        """The same lines for a folder here and there, but for the names."""
        here = self.succeeds("sum", local)
        there = self.succeeds("sum", address)
        self.assertEqual(there.text.replace(address, local), here.text)
        self.assertEqual(there.message, "")

    def test_mds(self):
        self.mds("d")
        with self.served() as address:
            self.assert_sums("d/", f"{address}/d/")
            self.assert_sums("d/", f"{address}/d/")
            text = self.succeeds("sum", f"{address}/d/index.json").text
            self.assertEqual(text, self.succeeds("sum", f"{address}/d/").text)
            self.assertEqual(self.succeeds("sum", f"{address}/d/", "--include", "*1.mds").text,
                             text.splitlines(True)[1])
            one = self.succeeds("sum", f"{address}/d/shard.00001.mds").text
            self.assertEqual(one, text.splitlines(True)[1])
            bags = self.succeeds("sum", "--bag", "d/").text
            self.assertEqual(
                self.succeeds("sum", "--bag", f"{address}/d/").text.replace(address + "/", ""), bags)

    def test_mds_compressed(self):
        self.mds("d", compression="zstd:3")
        with self.served() as address:
            self.assert_sums("d/", f"{address}/d/")

    def test_mds_without_an_index(self):
        self.mds("d")
        (self.dir / "d/index.json").rename(self.dir / "index.txt")
        with self.served() as address:
            self.refused("sum", f"{address}/d/", says="cannot be listed over HTTP; name the files")
            self.refused("sum", f"{address}/d/shard.00000.mds", "--dtype", "u16",
                         says="no index.json beside it lists this file")

    def test_mds_without_ranges(self):
        """Small shards come with the first request; larger ones are not taken for raw tokens."""
        self.mds("d")
        self.rows = [oracle.gen(1, 50000, 50257)] * 9
        self.mds("large")
        with self.served(has_ranges=False) as address:
            self.assert_sums("d/", f"{address}/d/")
            self.refused("sum", f"{address}/large/shard.00000.mds", "--dtype", "u16",
                         says="does not serve ranges; download it first")

    def test_megatron(self):
        self.write("a.bin", pack(self.tokens, "u16"))
        lengths = [len(row) for row in self.rows]
        self.write("a.idx", megatron_index(lengths, "u16"))
        seal = oracle.seal(self.tokens)
        for has_ranges in (True, False):
            with self.subTest(has_ranges=has_ranges), self.served(has_ranges) as address:
                args = [] if has_ranges else ["--dtype", "u16"]
                result = self.succeeds("sum", f"{address}/a.bin", *args)
                self.assertEqual(result.text.splitlines()[0], f"{seal}  {address}/a.bin")
        with self.served() as address:
            self.refused("sum", f"{address}/a.idx", says="name that file")
            (self.dir / "a.idx").unlink()
            self.refused("sum", f"{address}/a.bin", says="--dtype")

    def test_files_without_others_beside_them(self):
        """A plain file costs no more than a few requests for files that are not there."""
        self.write("tokens.u16", pack(self.tokens, "u16"))
        with self.served() as address:
            self.succeeds("sum", f"{address}/tokens.u16", "--dtype", "u16")
            self.assertFalse([path for path in self.asked if path != "/tokens.u16"])

    def test_save_to_disk(self):
        for name in ("b", "a"):
            self.write(f"d/train/{name}.u16", pack(self.tokens, "u16"))
        hf_state(self.dir / "d/train", ["b.u16", "a.u16"])
        self.write("d/dataset_dict.json", b'{"splits": ["train", "test"]}')
        with self.served() as address:
            text = self.succeeds("sum", f"{address}/d/train/", "--dtype", "u16").text
            self.assertEqual([line.rsplit("/", 1)[1] for line in text.splitlines()[:2]],
                             ["b.u16", "a.u16"])
            self.refused("sum", f"{address}/d/", "--dtype", "u16",
                         says=["has the splits train, test", f"{address}/d/train/"])

    def test_bucket(self):
        """Objects below a prefix in natural order; others are skipped by their names."""
        for name in ("p-2.bin", "p-10.bin", "sub/q.bin", "P.bin"):
            self.write(f"bucket/d/{name}", pack(self.tokens, "u16"))
        self.write("bucket/d/README.md", b"# tokens\n")
        self.write("bucket/d/P.idx", megatron_index([len(self.tokens)], "u16"))
        self.mds("bucket/m")
        with self.served() as address:
            env = {"AWS_ENDPOINT_URL": address, "AWS_REGION": "us-east-1",
                   "AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "something"}

            def listed(*args):
                result = self.iron("sum", *args, "--dtype", "u16", env=env)
                self.assertEqual(result.code, 0, str(result))
                lines = [line.split("  ")[1] for line in result.text.splitlines()[:-1]]
                return [line.removeprefix("s3://bucket/d/") for line in lines], result.message

            names, message = listed("s3://bucket/d/")
            self.assertEqual(names, ["P.bin", "p-2.bin", "p-10.bin"])
            self.assertRegex(message, r"skipped 1 file that is not tokens: s3://bucket/d/README.md")
            self.assertEqual(listed("s3://bucket/d/", "-r", "--exclude", "*.md"),
                             (["P.bin", "p-2.bin", "p-10.bin", "sub/q.bin"], ""))
            self.assertEqual(listed("s3://bucket/d/", "-r", "--include", "sub/*"), (["sub/q.bin"], ""))
            here = self.succeeds("sum", "bucket/m/").text
            there = self.succeeds("sum", "s3://bucket/m/", env=env).text
            self.assertEqual(there.replace("s3://", ""), here)
            self.refused("sum", "s3://bucket/none/", "--dtype", "u16", env=env, says="has no files")
