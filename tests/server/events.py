# SPDX-License-Identifier: MIT
"""Server-sent events, read by a strict parser: `event:`, `id:` and `data:` lines, comments, and a
blank line after each event.  The bytes are read chunked over a separate connection."""

import json
from dataclasses import dataclass

import contract
from wire import Wire, request


@dataclass
class Event:
    name: str
    id: str
    data: object


SCHEMAS = {"engine": "Change", "engines": "Changes", "deleted": "Gone", "run": "RunChange",
           "finding": "Finding"}


class Events:
    """An open stream of events: of one engine, or of the given target."""

    def __init__(self, server, engine=None, token=None, target=None):
        self.target = target or f"/v1/engines/{engine}/events"
        self.wire = Wire(server)
        headers = [("Authorization", f"Bearer {token}")] if token else []
        self.wire.send(request("GET", self.target, server.host, headers))
        self.head = self.wire.head()
        self.text, self.comments, self.is_ended = b"", 0, False
        assert self.head.status == 200, self.head
        assert self.head.type == "text/event-stream", self.head
        assert self.head.get("transfer-encoding") == "chunked", self.head

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def _more(self):
        size = int(self.wire._line(), 16)  # pylint: disable=protected-access
        if size == 0:
            self.is_ended = True
            return
        self.text += self.wire._exactly(size)  # pylint: disable=protected-access
        assert self.wire._exactly(2) == b"\r\n"  # pylint: disable=protected-access

    def next(self):
        """The next event, or None at the end of the stream."""
        while True:
            while b"\n\n" not in self.text:
                if self.is_ended:
                    assert not self.text.strip(b"\n"), f"half an event: {self.text!r}"
                    return None
                self._more()
            block, _, self.text = self.text.partition(b"\n\n")
            event = self._parse(block.decode("utf-8"))
            if event:
                return event

    def _parse(self, block):
        fields = {}
        for line in block.split("\n"):
            if line.startswith(":") or not line:
                self.comments += 1
                continue
            name, _, value = line.partition(": ")
            assert name in ("event", "id", "data", "retry"), f"a line of an event: {line!r}"
            assert name not in fields, f"{name} twice: {block!r}"
            fields[name] = value
        if "data" not in fields:
            return None
        event = Event(fields.get("event"), fields.get("id"), json.loads(fields["data"]))
        contract.validate(event.data, contract.schema_named(SCHEMAS[event.name]), self.target)
        if event.name == "engine":
            assert event.id == str(event.data["version"]), block
        return event

    def until(self, claim):
        """The first event that satisfies the claim; earlier ones are skipped."""
        while (event := self.next()) is not None:
            if claim(event):
                return event
        raise AssertionError(f"{self.target}: the stream ended before that")
