# SPDX-License-Identifier: MIT
"""Checks responses against the OpenAPI document: every response must be declared there.

`check` takes a request's method and target and the answer that came.  Where the document has the
path and the method (HEAD counts as GET), the status, the content type, the required headers and
the body's schema must be those that are declared.  Everywhere else the answer must be an error
that the document describes in its opening words: a Problem.  A Problem is always checked against
its schema, which ties type, status and title together.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema

from harness import REPO


def read_document() -> dict:
    """The OpenAPI document as it is built into the server."""
    with tempfile.TemporaryDirectory() as room:
        output = Path(room) / "openapi.json"
        subprocess.run(["cmake", f"-DTREE={REPO}", f"-DOUTPUT={output}", "-P",
                        REPO / "cmake" / "Openapi.cmake"], check=True)
        return json.loads(output.read_text(encoding="utf-8"))


DOCUMENT = read_document()
PROBLEM_TYPE = "application/problem+json"
URN = "urn:iron:problem:"


class Undeclared(AssertionError):
    """A response that the OpenAPI document does not declare."""


def resolve(thing: dict) -> dict:
    """Follows a $ref within the document."""
    while "$ref" in thing:
        node = DOCUMENT
        for part in thing["$ref"].removeprefix("#/").split("/"):
            node = node[part.replace("~1", "/").replace("~0", "~")]
        thing = node
    return thing


def template_pattern(template: str) -> re.Pattern:
    return re.compile("".join("[^/]+" if part.startswith("{") else re.escape(part)
                              for part in re.split(r"(\{[^}]*\})", template)) + r"\Z")


TEMPLATES = {path: template_pattern(path) for path in DOCUMENT["paths"]}


def operation(method: str, target: str):
    """The document's operation for a request, or None."""
    path = urlsplit(target).path
    for template, pattern in TEMPLATES.items():
        if pattern.match(path):
            method = "get" if method == "HEAD" else method.lower()
            return DOCUMENT["paths"][template].get(method)
    return None


_validators = {}


def validate(document, schema: dict, what: str):
    """Validates a document against a schema of the OpenAPI document, whose dialect is 2020-12."""
    key = json.dumps(schema, sort_keys=True)
    if key not in _validators:
        whole = {**schema, "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator.check_schema(whole)
        _validators[key] = jsonschema.Draft202012Validator(
            whole, format_checker=jsonschema.FormatChecker())
    errors = sorted(_validators[key].iter_errors(document), key=lambda e: list(e.path))
    if errors:
        lines = [f"{list(e.path)}: {e.message[:300]}" for e in errors[:5]]
        raise Undeclared(f"{what}: {lines}")


def schema_named(name: str) -> dict:
    return {"$ref": f"#/components/schemas/{name}"}


def check_problem(answer, what: str, has_body=True):
    if answer.type != PROBLEM_TYPE:
        raise Undeclared(f"{what}: an error that is not problem+json: {answer}")
    if not has_body:
        return
    problem = answer.json
    validate(problem, schema_named("Problem"), what)
    if problem["status"] != answer.status:
        raise Undeclared(f"{what}: says status {problem['status']}: {answer}")
    for member in ("detail", "help", "instance"):
        if not problem[member].strip():
            raise Undeclared(f"{what}: an empty {member}: {answer}")
    if ("position" in problem) != (problem["type"] == URN + "position-mismatch"):
        raise Undeclared(f"{what}: position: {answer}")


def check_headers(answer, declared: dict, what: str):
    for name, header in declared.get("headers", {}).items():
        header = resolve(header)
        value = answer.get(name)
        if value is None:
            if header.get("required"):
                raise Undeclared(f"{what}: no {name}: {answer}")
            continue
        if header["schema"].get("type") == "integer":
            value = int(value)
        validate(value, header["schema"], f"{what}, {name}")


def check_content(answer, declared: dict, what: str, has_body: bool):
    content = declared.get("content")
    if not content:
        if answer.body:
            raise Undeclared(f"{what}: a body where none is declared: {answer}")
        return
    if answer.type not in content:
        raise Undeclared(f"{what}: type {answer.type!r}, declared {list(content)}: {answer}")
    schema = content[answer.type].get("schema")
    if has_body and schema and answer.type.endswith("json"):
        validate(answer.json, schema, what)


def check(method: str, target: str, answer):
    """Raises Undeclared unless the document declares this response."""
    what = f"{method} {target[:200]} -> {answer.status}"
    has_body = method != "HEAD"
    known = operation(method, target)
    if known is None:
        if answer.status < 400:
            raise Undeclared(f"{what}: the document does not know the operation: {answer}")
        check_problem(answer, what, has_body)
        return
    if str(answer.status) not in known["responses"]:
        raise Undeclared(f"{what}: declared are {list(known['responses'])}: {answer}")
    declared = resolve(known["responses"][str(answer.status)])
    check_headers(answer, declared, what)
    check_content(answer, declared, what, has_body)
    if answer.status >= 400:
        check_problem(answer, what, has_body)


def kind(answer) -> str:
    """The kind of a Problem."""
    return answer.json["type"].removeprefix(URN)
