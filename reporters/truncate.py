"""Shorten a report that is too long, given as its JSON document. Each cut leaves a note."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reporters.fields import clean_text

_TEXT_LIMITS = (
    64 * 1024,
    16 * 1024,
    4 * 1024,
    1024,
    256,
)  # characters; the first that suffices
_LOG_ROOM_BYTES = 8 * 1024  # texts are shortened until the log has this much room
_NOTICE_BYTES = 120  # for the line that counts the lines cut


class Unwritable(ValueError):
    """A value has no JSON form, or the fields that are never cut are too large."""


def encoded(value: object) -> bytes:
    """Encode *value* as compact JSON, sorted by name, with finite numbers.

    Raises:
        Unwritable: *value* has no JSON form.
    """
    try:
        return json.dumps(
            _clean(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unwritable(f"cannot be written as JSON: {error}") from None


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_clean(name): _clean(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    return value


def fitted(document: Mapping[str, Any], max_bytes: int) -> bytes:
    """Encode *document* in at most *max_bytes*: shorten its texts, cut lines from the middle of ``log``.

    Raises:
        Unwritable: *document* does not fit even when it is cut, or it has no JSON form.
    """
    whole = encoded(document)
    if len(whole) <= max_bytes:
        return whole
    for limit in _TEXT_LIMITS:
        short = _clipped(document, limit)
        room = max_bytes - len(encoded({**short, "log": []}))
        if room >= min(_LOG_ROOM_BYTES, len(encoded(short["log"]))):
            return encoded({**short, "log": _cut_log(short["log"], room)})
    largest = max(document, key=lambda name: len(encoded(document[name])))
    raise Unwritable(f"{largest}: too large, expected a report of at most {max_bytes} bytes")


def _clipped(document: Mapping[str, Any], characters: int) -> dict[str, Any]:
    """Return a copy of *document*: reason, failure texts and log lines cut to *characters* each."""
    failure = document["failure"]
    if failure is not None:
        failure = {
            **failure,
            "message": clip(failure["message"], characters),
            "stderr_tail": clip(failure["stderr_tail"], characters),
        }
    log = [{**line, "text": clip(line["text"], characters)} for line in document["log"]]
    return {**document, "reason": clip(document["reason"], characters), "failure": failure, "log": log}


def clip(text: str, characters: int) -> str:
    """Cut *text* in its middle to about *characters*; a note counts the characters cut."""
    surplus = len(text) - characters
    if surplus <= 0:
        return text
    half = characters // 2
    return f"{text[:half]} [... {surplus} characters cut ...] {text[-half:]}"


def _cut_log(lines: Sequence[Mapping[str, Any]], room_bytes: int) -> list[Mapping[str, Any]]:
    """Return the first and last lines that fit into *room_bytes*; a line between counts the lines cut."""
    sizes = [len(encoded(line)) + 1 for line in lines]
    if sum(sizes) <= room_bytes:
        return list(lines)
    head = tail = 0
    left = room_bytes - _NOTICE_BYTES
    while head + tail < len(lines):
        from_head = head <= tail
        size = sizes[head] if from_head else sizes[-1 - tail]
        if size > left:
            break
        left -= size
        head, tail = head + from_head, tail + (not from_head)
    cut = len(lines) - head - tail
    notice = {"level": "warning", "seconds": lines[head]["seconds"], "text": f"[{cut} lines cut here]"}
    return [*lines[:head], notice, *lines[len(lines) - tail :]]
