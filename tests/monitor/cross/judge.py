"""What is wrong with an answer: an error, a part that failed, or a value that does not exist."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.http import HttpResponseBase
from jsonschema import Draft202012Validator

from tests.monitor.cross.visits import Visit
from tests.monitor.depot.access.requests_sent import API
from tests.monitor.web.api.openapi_document import openapi_document

FAILED_PART = 'failed-part"'  # the class of the sentence
# Answers that an identity may get: shown, unchanged, elsewhere, malformed, denied, hidden, gone, invalid.
PERMITTED = frozenset({200, 204, 302, 304, 400, 401, 403, 404, 405, 409, 422})
_BETWEEN_TAGS = re.compile(r">([^<]+)<")
_SCRIPTS = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
# A value that was not there; a sentence may begin with the word: "None open or planned."
_ABSENT = re.compile(r"(?<![-\w])(?:None|[Nn]a[Nn]|Traceback|object at 0x[0-9a-f]+)(?![-\w])")
_SENTENCE = re.compile(r"None[.: ]")
_IN_ATTRIBUTES = re.compile(r'="[^"]*\b(?:None|nan|NaN)\b[^"]*"')
_TEXT_OF_NOTHING = re.compile(rb'"[^"]*: None\b[^"]*"|"None"')
_TEXTS = ("text/csv", "text/calendar", "image/svg+xml", "text/plain", "application/openmetrics-text")


def is_page(answer: HttpResponseBase) -> bool:
    """Return whether *answer* is a page, or should have been one."""
    is_html = answer.headers.get("Content-Type", "").startswith("text/html")
    return is_html and (answer.status_code == 200 or answer.status_code >= 500)


def wrong(visit: Visit, answer: HttpResponseBase) -> Iterator[str]:
    """Yield in words what is wrong with *answer*."""
    if answer.status_code not in PERMITTED and visit.route != "readyz":  # it is 503 without workers
        yield f"status {answer.status_code}"
        return
    if answer.status_code != 200:
        return
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
    media_type = str(answer.headers.get("Content-Type", "")).partition(";")[0]
    if answer.headers.get("Content-Encoding") == "gzip":
        content = gzip.decompress(content)
    if media_type == "text/html":
        yield from _wrong_in_page(content.decode(), is_prose=visit.route.startswith("help/guides/"))
    elif media_type.endswith("ndjson"):
        for line in content.splitlines():
            yield from _wrong_in_json(visit, line)
    elif media_type.endswith("json"):
        yield from _wrong_in_json(visit, content)
    elif media_type in _TEXTS:
        found = re.search(r"\b(?:None|Traceback)\b", content.decode())
        if found:
            around = content.decode()[max(found.start() - 60, 0) :][:120]
            yield f"{found[0]!r} in the {media_type}: {around!r}"


def _wrong_in_page(page: str, *, is_prose: bool) -> Iterator[str]:
    """Yield what is wrong with *page*; prose may tell of numbers that are none."""
    if FAILED_PART in page:
        at = page.index(FAILED_PART)
        yield f"a part that could not be computed: ...{page[max(at - 300, 0) : at + 60]!r}"
    if is_prose:
        return
    text = _SCRIPTS.sub("", page)
    for shown in _BETWEEN_TAGS.findall(text):
        if (found := _ABSENT.search(shown)) and not _SENTENCE.match(shown.strip()):
            yield f"{found[0]!r} is shown: {shown.strip()[:120]!r}"
    for found in _IN_ATTRIBUTES.findall(text):
        yield f"an attribute of nothing: {found[:120]!r}"


def _wrong_in_json(visit: Visit, content: bytes) -> Iterator[str]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        value = json.loads(content, parse_constant=refuse)
    except ValueError as error:
        yield f"invalid JSON: {error}"
        return
    if visit.is_operation and (found := _TEXT_OF_NOTHING.search(content)):
        yield f"a text of nothing: {found[0]!r}"
    validator = _validator(visit.route)
    if validator is not None:
        for broken in list(validator.iter_errors(value))[:2]:
            yield f"not as in the OpenAPI document: {broken.json_path}: {broken.message[:200]}"


@cache
def _validator(route: str) -> Any:
    """Return the validator of an answer with the status 200 of the operation *route*; None if it has none."""
    document = openapi_document()
    method, _, path = route.partition(" ")
    definition = document["paths"].get(API + path, {}).get(method.lower())
    content = (definition or {}).get("responses", {}).get("200", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    return Draft202012Validator({**schema, "components": document["components"]}) if schema else None
