# SPDX-License-Identifier: MIT
"""A headless Chromium, driven through its DevTools protocol with the standard library alone.

`Browser` starts one with a temporary profile.  `Page` opens a file and records what a page must not
do (`complaints`): console errors, exceptions, violations of its content security policy, and
requests for anything but the file itself.

The protocol is JSON over a WebSocket (RFC 6455); `Socket` below is a client for text frames.
"""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

TIMEOUT_S = 300


class Socket:
    """Sends and receives whole text messages."""

    def __init__(self, host: str, port: int, path: str):
        self.connection = socket.create_connection((host, port), timeout=TIMEOUT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        self.stream = self.connection.makefile("rb")
        status = self.stream.readline()
        if b" 101 " not in status:
            raise ConnectionError(f"no WebSocket: {status!r}")
        while self.stream.readline() not in (b"\r\n", b""):
            pass

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x81, 0x80 | size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
        masked = bytes(byte ^ mask[k % 4] for k, byte in enumerate(data))
        self.connection.sendall(head + mask + masked)

    def receive(self) -> str:
        message = b""
        while True:
            first, second = self.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self.read(8))
            part, kind = self.read(size), first & 0x0F
            if kind == 8:
                raise ConnectionError("the browser closed the connection")
            if kind in (0, 1):
                message += part
                if first & 0x80:
                    return message.decode()

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) != size:
            raise ConnectionError("the browser is gone")
        return data

    def close(self) -> None:
        self.stream.close()
        self.connection.close()


class Browser:
    """Chromium in a `with` statement."""

    @staticmethod
    def find():
        return shutil.which("chromium") or shutil.which("chromium-browser")

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="iron-chromium-")
        self.process = subprocess.Popen(
            [self.find(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
             "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={self.profile}",
             "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = self.wait_for_port()
        return self

    def wait_for_port(self) -> int:
        told = Path(self.profile) / "DevToolsActivePort"
        for _ in range(TIMEOUT_S * 10):
            if told.exists() and told.read_text().strip():
                return int(told.read_text().split()[0])
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.__exit__()
        raise RuntimeError("chromium did not start")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def page(self, path: Path, **options):
        return Page(self.port, path, **options)


class Page:
    """One file in a tab, at a width, light or dark."""

    def __init__(self, port: int, path: Path, width=1280, height=900, theme="light"):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank",
                                         method="PUT")
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            target = json.load(answer)
        self.socket = Socket("127.0.0.1", port, "/devtools/page/" + target["id"])
        self.url, self.last, self.complaints = path.resolve().as_uri(), 0, []
        self.loaded = set()  # documents of this tab, about:blank among them, by their loader's id
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        loader = self.call("Page.navigate", url=self.url)["loaderId"]
        self.wait_for(lambda: loader in self.loaded)

    def wait_for(self, claim) -> None:
        while not claim():
            self.hear(json.loads(self.socket.receive()))

    def reload(self) -> None:
        before = set(self.loaded)
        self.call("Page.reload")
        self.wait_for(lambda: self.loaded - before)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, method: str, **params):
        self.last += 1
        self.socket.send(json.dumps({"id": self.last, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.hear(message)

    def hear(self, event: dict) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.lifecycleEvent" and params["name"] == "load":
            self.loaded.add(params["loaderId"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append("exception: " + json.dumps(params["exceptionDetails"])[:400])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning",
                                                                         "assert"):
            self.complaints.append("console: " + json.dumps(params["args"])[:400])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append("log: " + params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url != self.url and not url.startswith("data:"):
                self.complaints.append("request: " + url)

    def evaluate(self, expression: str):
        """The value of a JavaScript expression; waits for promises."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def settle(self) -> None:
        """Waits until two frames have been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame("
                      "() => requestAnimationFrame(() => done(0))))")

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13, "ArrowDown": 40}[key])

    def screenshot(self, path: Path) -> None:
        """A screenshot of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(
            self.call("Page.printToPDF", printBackground=True)["data"]))
