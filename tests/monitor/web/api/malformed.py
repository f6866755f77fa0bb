"""Malformed bodies made from valid reports, each with the field that the answer has to name."""

from __future__ import annotations

import gzip
import json
import math
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from backports import zstd

from monitor.web.api.http.envelope import JSON, MAX_BYTES, MAX_REPORTS, NDJSON
from reporters import report as wire
from reporters.usage import ResourceUsage
from tests.monitor.builders import circle_report, failed_circle_report

Path = tuple[str | int, ...]
Document = dict[str, Any]
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Malformed:
    """A *body* and its headers.

    *length*: a false Content-Length. The answer must name one of *fields*, if any.
    """

    what: str
    body: bytes
    fields: tuple[str, ...] = ()
    content_type: str = JSON
    encoding: str = ""
    length: int | None = None


@dataclass(frozen=True)
class _Spoiled:
    """The bytes of one malformed report."""

    what: str
    body: bytes
    fields: tuple[str, ...] = ()


def drawn(seed: int, count: int, noon: datetime) -> Iterator[Malformed]:
    """Yield *count* bodies without a valid report."""
    chance = random.Random(seed)
    valid = [json.loads(body) for body in _valid(noon)]
    for _ in range(count):
        yield chance.choices([_alone, _together, _enveloped], weights=[6, 2, 1])[0](chance, valid)


def _valid(noon: datetime) -> Iterator[bytes]:
    yield wire.to_json(circle_report(noon, bindings={"ring": ("here", "there")}))
    yield wire.to_json(failed_circle_report(noon + timedelta(minutes=1)))
    yield wire.to_json(circle_report(noon + timedelta(minutes=2), usage={"here": ResourceUsage(5, 6, 0.5)}))


def _alone(chance: random.Random, valid: Sequence[Document]) -> Malformed:
    malformed = _spoiled(chance, valid)
    return _packed(chance, Malformed(malformed.what, malformed.body, malformed.fields))


def _together(chance: random.Random, valid: Sequence[Document]) -> Malformed:
    """Put several into an array or into NDJSON."""
    several = [_spoiled(chance, valid) for _ in range(chance.randint(1, 4))]
    what = ", ".join(malformed.what for malformed in several)
    if chance.random() < 0.5:
        lines = b"\n".join(malformed.body.replace(b"\n", b" ") for malformed in several)
        return _packed(chance, Malformed(what, lines, content_type=NDJSON))
    fields = several[0].fields if len(several) == 1 else ()
    return _packed(
        chance, Malformed(what, b"[" + b",".join(malformed.body for malformed in several) + b"]", fields)
    )


def _packed(chance: random.Random, malformed: Malformed) -> Malformed:
    encoding = chance.choice(["", "", "identity", "gzip", "zstd"])
    packed = {"gzip": lambda: gzip.compress(malformed.body, 1), "zstd": lambda: zstd.compress(malformed.body)}
    body = packed[encoding]() if encoding in packed else malformed.body
    return Malformed(malformed.what, body, malformed.fields, malformed.content_type, encoding)


def _spoiled(chance: random.Random, valid: Sequence[Document]) -> _Spoiled:
    """Return one that the wire format refuses; a change that leaves it valid is drawn again."""
    while True:
        document = json.loads(json.dumps(chance.choice(valid)))
        malformed = chance.choice(_WAYS)(chance, document)
        try:
            wire.from_json(malformed.body)
        except wire.ReportError:
            return malformed


def _bytes(document: Document) -> bytes:
    return json.dumps(document).encode()


def _paths(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each value in *value*."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in below:
        yield (*path, name)
        yield from _paths(inner, (*path, name))


def _at(document: Document, path: Path) -> Any:
    """Return the container of the value at *path*."""
    shown: Any = document
    for name in path[:-1]:
        shown = shown[name]
    return shown


def _named(path: Path) -> tuple[str, ...]:
    """Return how an answer may name *path*: by its top field, or by the identity that depends on it."""
    top = str(path[0])
    return (top, "run") if top in {"series", "slot", "version"} else (top,)


# Values that are invalid in most fields; many parsers refuse 1e400 and NaN as JSON.
_WRONG: Sequence[Callable[[], object]] = (
    lambda: None,
    lambda: True,
    lambda: -1,
    lambda: 10**30,
    lambda: -(10**400),
    lambda: 1e308 * 10,
    lambda: math.nan,
    lambda: -math.inf,
    lambda: "",
    lambda: "x" * 300,
    lambda: "a\0b",
    lambda: "\ud800",
    list,
    dict,
    lambda: [[]],
    lambda: {"": None},
    lambda: "9999-12-31T23:59:59-23:59",
    lambda: "2026-02-30T00:00:00Z",
    lambda: list(range(1000)),
)


def _wrong_value(chance: random.Random, document: Document) -> _Spoiled:
    path = chance.choice(list(_paths(document)))
    value = chance.choice(_WRONG)()
    _at(document, path)[path[-1]] = value
    body = _bytes(document)
    is_json = not any(isinstance(value, float) and not math.isfinite(value) for value in [value])
    return _Spoiled(f"{path} = {value!r:.30}", body, _named(path) if is_json else ())


def _missing(chance: random.Random, document: Document) -> _Spoiled:
    path = chance.choice(list(_paths(document)))
    del _at(document, path)[path[-1]]
    return _Spoiled(f"without {path}", _bytes(document), _named(path))


def _deep(chance: random.Random, document: Document) -> _Spoiled:
    """Nest beyond the limit of parsers: slightly, or as deep as fits."""
    levels = chance.choice([40, 900, 5_000, 100_000])
    path = chance.choice(list(_paths(document)))
    _at(document, path)[path[-1]] = "HERE"
    opening, closing = chance.choice([("[", "]"), ('{"a":', "}")])
    inner = opening * levels + "1" + closing * levels
    body = json.dumps(document).replace('"HERE"', inner, 1).encode()
    return _Spoiled(f"{levels} levels at {path}", body)


def _future(chance: random.Random, document: Document) -> _Spoiled:
    document["version"] = chance.choice([0, 2, 3, 99, 2**40])
    return _Spoiled("another version", _bytes(document), ("version",))


def _other_run(chance: random.Random, document: Document) -> _Spoiled:
    runs = ["00000000-0000-0000-0000-000000000000", document["run"].upper(), document["run"][:-1], "run"]
    document["run"] = chance.choice(runs)
    return _Spoiled("another run", _bytes(document), ("run",))


def _twice(chance: random.Random, document: Document) -> _Spoiled:
    name = chance.choice(list(document))
    again = json.dumps({name: document[name]})[1:-1]
    return _Spoiled(f"{name} twice", _bytes(document)[:-1] + f", {again}}}".encode(), (name,))


def _truncated(chance: random.Random, document: Document) -> _Spoiled:
    body = _bytes(document)
    return _Spoiled("truncated", body[: chance.randrange(len(body))])


def _changed_bytes(chance: random.Random, document: Document) -> _Spoiled:
    body = bytearray(_bytes(document))
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(len(body))
        body[place : place + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 3))
    return _Spoiled("other bytes", bytes(body))


def _not_text(chance: random.Random, document: Document) -> _Spoiled:
    bad = chance.choice([b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\0"])
    body = _bytes(document)
    return _Spoiled("not UTF-8", body.replace(b"began", bad, 1) if b"began" in body else body + bad)


def _too_large(_chance: random.Random, document: Document) -> _Spoiled:
    document["more"] = "x" * wire.MAX_BYTES
    return _Spoiled("too large", _bytes(document))


def _many(chance: random.Random, document: Document) -> _Spoiled:
    name = chance.choice(["stages", "metrics", "log"])
    document[name] = [{}] * chance.choice([1, 10, 100, 1000, 1000, 50_000])
    return _Spoiled(f"many {name}", _bytes(document), (name, "too large"))


_WAYS = (
    *[_wrong_value] * 6,
    *[_missing] * 3,
    *[_deep, _future, _other_run, _twice, _truncated, _changed_bytes, _not_text, _many],
    _too_large,
)


def _enveloped(chance: random.Random, valid: Sequence[Document]) -> Malformed:
    """Return a malformed body of valid reports."""
    return chance.choice(_ENVELOPES)(chance, _bytes(chance.choice(valid)))


def _bomb(chance: random.Random, _good: bytes) -> Malformed:
    encoding, what = chance.choice(["gzip", "zstd"]), chance.choice(sorted(_BOMBS))
    return Malformed(f"bomb of {what} in {encoding}", _packed_bomb(encoding, what), encoding=encoding)


_BOMBS = {"blanks": b" ", "numbers": b"[" + b"1," * (MEBIBYTE // 2), "lists": b"[", "objects": b"[{}," * 1000}


@cache
def _packed_bomb(encoding: str, what: str) -> bytes:
    """Return a small compressed body that decompresses to more than the limit."""
    piece = _BOMBS[what] * (MEBIBYTE // len(_BOMBS[what]))
    packer = zlib.compressobj(1, wbits=31) if encoding == "gzip" else zstd.ZstdCompressor()
    return b"".join([packer.compress(b"["), *(packer.compress(piece) for _ in range(64)), packer.flush()])


def _array_as_large_as_may_be(chance: random.Random, _good: bytes) -> Malformed:
    item = chance.choice([b"1,", b"{},", b"[],", b'"",', b"null,"])
    return Malformed("a large array", b"[" + item * (MAX_BYTES // len(item) - 1) + b"{}]")


def _lying(chance: random.Random, good: bytes) -> Malformed:
    """Declare a Content-Length that is shorter or much longer than the body."""
    if chance.random() < 0.5:
        return Malformed("shorter", good, length=chance.randrange(len(good) - 1))
    return Malformed("longer", b"[" + b"1," * 100, length=2 * 10**9)


def _badly_packed(chance: random.Random, good: bytes) -> Malformed:
    encoding = chance.choice(["gzip", "zstd"])
    packed = gzip.compress(good) if encoding == "gzip" else zstd.compress(good)
    broken = chance.choice([packed[: chance.randrange(len(packed) - 1)], packed + b"?", good, packed[3:]])
    return Malformed(f"broken {encoding}", broken, encoding=encoding)


def _packed_twice(_chance: random.Random, good: bytes) -> Malformed:
    return Malformed("packed twice", gzip.compress(gzip.compress(good)), encoding="gzip")


def _other_packing(chance: random.Random, good: bytes) -> Malformed:
    return Malformed("another packing", good, encoding=chance.choice(["br", "deflate", "gzip,gzip", "*"]))


def _other_type(chance: random.Random, good: bytes) -> Malformed:
    kinds = ["text/html", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "x"]
    return Malformed("another type", good, content_type=chance.choice(kinds))


def _broken_array(chance: random.Random, good: bytes) -> Malformed:
    whole = b"[" + good + b"," + good + b"]"
    broken = [
        whole[:-1],
        whole + b"]",
        b"[" + whole,
        whole.replace(b"},{", b"} {"),
        b"[,",
        b"[]",
    ]
    return Malformed("broken array", chance.choice(broken))


def _too_many(chance: random.Random, _good: bytes) -> Malformed:
    if chance.random() < 0.5:
        return Malformed("too many", b"[" + b"{}," * MAX_REPORTS + b"{}]")
    return Malformed("too many lines", b"{}\n" * (MAX_REPORTS + 1), content_type=NDJSON)


_ENVELOPES = (
    _bomb,
    _array_as_large_as_may_be,
    _lying,
    _badly_packed,
    _packed_twice,
    _other_packing,
    _other_type,
    _broken_array,
    _too_many,
)
