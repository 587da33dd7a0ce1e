# SPDX-License-Identifier: MIT
"""The sentences that a server may refuse to start with, taken from the sources.

A sentence is what stands in a call of IRON_FAIL, IRON_FAIL_IF, iron__fail or usage: its literals, joined,
with the places of values as they are written there (%s, %u).
"""

import re

from harness import REPO

# What a start goes through. Running out of memory has one answer for all.
FILES = ("src/server/activation.c", "src/server/listen.c", "src/server/options.c",
         "src/server/server.c", "src/server/daemon.c", "src/server/gate.c", "src/server/log.c",
         "src/server/pulse.c",
         "src/core/small_file.c", "src/core/token_file.c",
         "src/store/directory.c", "src/store/database.c", "src/store/database_file.c",
         "src/store/log_check.c", "src/store/inspection.c", "src/store/recovery.c",
         "src/store/rows.c", "src/store/tables.c", "src/store/table_feeds.c",
         "src/store/writer.c", "apps/iron/cmd_serve.c")
# Of callers that are programs, or that nobody ever reads.
NOT_SAID = ("iron_server_options.struct_size", "a server needs options", "the inspection was ended",
            "a group has changed more")
CALL = re.compile(r"\b(?:IRON_FAIL(?:_IF)?|iron__fail|usage)\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def call_at(text: str, start: int) -> str:
    """What stands between the parentheses that open before `start`."""
    depth, at = 1, start
    while depth:
        if text[at] == '"':
            at = LITERAL.match(text, at).end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def sentences() -> dict:
    """{sentence: file}"""
    found = {}
    for path in FILES:
        text = re.sub(r"/\*.*?\*/", "", (REPO / path).read_text(encoding="utf-8"), flags=re.DOTALL)
        for call in CALL.finditer(text):
            words = "".join(LITERAL.findall(call_at(text, call.end())))
            if words and not words.startswith(("out of memory", *NOT_SAID)):
                found[words.replace("\\\"", '"')] = path
    return found


if __name__ == "__main__":
    for sentence, source in sentences().items():
        print(f"{source}: {sentence}")
