# SPDX-License-Identifier: MIT
"""The error messages of a failed start, extracted from the sources.

A message is the text of a call of IRON_FAIL, IRON_FAIL_IF, iron__fail or usage: its joined
literals, with the placeholders of values (%s, %u). iron__fail_path has only its verb.
"""

import re

from harness import REPO

# What a start goes through. Running out of memory has one answer for all.
FILES = ("src/server/server.c", "src/server/connections.c", "src/server/request.c",
         "src/server/access.c", "src/server/log.c", "src/core/files.c",
         "src/store/store.c", "src/store/recovery.c", "src/store/engines.c", "src/store/marker.c", "apps/iron/cmd_serve.c")
# For programs, never shown, or said only while the server runs.
NOT_SAID = ("iron_server_options.struct_size", "a server needs options",
            "the inspection was stopped", "a group has changed more", "an engine named",
            "an engine's name", "engine %s was deleted", "engine %s: batch", "the limit of %",
            "the engines have", "the store is being closed", "% bytes are not", "%u large bodies",
            "a feed needs", "cannot read the nodes", "engine %s is at", "engine %s: the feed before",
            "large bodies for", "the key was used", "connections with each of the last")
CALL = re.compile(r"\b(?:IRON_FAIL(?:_IF)?|iron__fail(?:_path)?|usage)\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def call_at(text: str, start: int) -> str:
    """The text between the parentheses that open before `start`."""
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
        text = (REPO / path).read_text(encoding="utf-8").partition("\n/* Outputs. */")[0]  # a start has none
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        for call in CALL.finditer(text):
            words = "".join(LITERAL.findall(call_at(text, call.end())))
            if call.group().startswith("iron__fail_path"):
                words = f"cannot {words} %.120s: %s"
            if words and not words.startswith(("out of memory", *NOT_SAID)):
                found[words.replace("\\\"", '"')] = path
    return found


if __name__ == "__main__":
    for sentence, source in sentences().items():
        print(f"{source}: {sentence}")
