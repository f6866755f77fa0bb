"""Mutated messages of a provider, from a seed: values of other types, missing members, flipped bytes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    10**400,
    float("inf"),
    float("nan"),
    "",
    "\0",
    "\ud800",
    "\x1b[2J\r\n",
    "x" * 300,
    "ä" * 70_000,
    [],
    {},
    [None, [{}]],
    {"a": {"b": [1]}},
    ["RS256", 7],
    "https://evil.example.org/",
    "http://127.0.0.1:1/",
    "none",
)
DEEP = b'{"a":' * 3000 + b"1" + b"}" * 3000


def mutated(document: Any, random: Random) -> bytes:
    """Return *document* as JSON with one to three mutations of its members or bytes."""
    for _ in range(random.randint(1, 3)):
        if random.random() < 0.6:
            document = _member_changed(document, random)
    text = json.dumps(document).encode()
    return text if random.random() < 0.6 else _bytes_changed(text, random)


def mutated_text(text: str, random: Random) -> str:
    """Return *text*, such as a token, with one character or part changed."""
    position = random.randrange(len(text))
    match random.randrange(5):
        case 0:
            return text[:position]
        case 1:
            return text[:position] + random.choice("AZaz09-_.=~ä") + text[position + 1 :]
        case 2:
            return text[:position] + text[position:][::-1]
        case 3:
            return ".".join(random.sample(text.split("."), text.count(".") + 1))
        case _:
            return text + random.choice(("=", ".", "A", " ", "\n", "A" * 600_000))


def _member_changed(document: Any, random: Random) -> Any:
    """Return *document* with a member removed, changed or added, at any level."""
    if isinstance(document, dict) and document:
        name = random.choice(list(document))
        action = random.randrange(4)
        if action == 0:
            return {key: value for key, value in document.items() if key != name}
        if action == 1 and isinstance(document[name], dict | list):
            return {**document, name: _member_changed(document[name], random)}
        if action == 2:
            return {
                **document,
                random.choice(("x", "", "sub", "aud", "azp", "at_hash", "crit")): _junk(random),
            }
        return {**document, name: _junk(random)}
    if isinstance(document, list) and document:
        position = random.randrange(len(document))
        return [*document[:position], _member_changed(document[position], random), *document[position + 1 :]]
    return _junk(random)


def _junk(random: Random) -> Any:
    return random.choice(JUNK)


def _bytes_changed(text: bytes, random: Random) -> bytes:
    position = random.randrange(len(text) + 1)
    match random.randrange(5):
        case 0:
            return text[:position]
        case 1:
            return text[:position] + bytes([random.randrange(256)]) + text[position + 1 :]
        case 2:
            return text[:position] + text[:position]
        case 3:
            return random.choice((b"", DEEP, b"null", b"[]", b"\xff\xfe", b" " * (1 << 20) + text))
        case _:
            return text[: position // 2] + text[position:]
