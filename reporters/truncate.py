"""Making a report fit: what is too long is cut, and says so. Works on the plain JSON document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reporters.fields import clean_text

_TEXT_LIMITS = (64 * 1024, 16 * 1024, 4 * 1024, 1024, 256)  # characters; the mildest that fits is used
_LOG_ROOM_BYTES = 8 * 1024  # texts are clipped until the log has at least so much room
_NOTICE_BYTES = 120  # of the line that says how many lines were cut


class Unwritable(ValueError):
    """The document holds what JSON cannot say, or is too large in what is never cut."""


def encoded(value: object) -> bytes:
    """*value* as JSON: compact, sorted by name, UTF-8, finite numbers. Raises Unwritable."""
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
    """Encode *document* in at most *max_bytes*: cut lines from the middle of ``log``, then clip texts.

    Raises:
        Unwritable: it does not fit even so, or cannot be encoded.
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
    """A copy with the reason, the failure's texts and the log's lines cut to *characters* each."""
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
    """Cut *text* in its middle to about *characters*, with a note of how many are gone."""
    gone = len(text) - characters
    if gone <= 0:
        return text
    half = characters // 2
    return f"{text[:half]} [... {gone} characters cut ...] {text[-half:]}"


def _cut_log(lines: Sequence[Mapping[str, Any]], room_bytes: int) -> list[Mapping[str, Any]]:
    """The first and the last lines that fit in *room_bytes*, and between them one that counts the others."""
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
