"""Reports as they are sent: what was read and unpacked within bounds, and the bytes of each report in it.

Nothing here knows of HTTP's machinery or of the depot. Whatever comes, no more than ``MAX_BYTES`` of it is
held unpacked, and no more than ``MAX_REPORTS`` reports are made of it.

Errors::

    EnvelopeError       the whole is refused; sending the same again gives the same answer
    |-- Unsupported     a way to pack, or a type, that is not read; says which are
    |-- TooMuch         more bytes, or more reports, than are taken at once; says how many are
    `-- Malformed       it cannot be unpacked, or told where one report ends and the next begins
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import msgspec
from backports import zstd

from reporters.report import MAX_BYTES as REPORT_BYTES

MAX_BYTES = 8 * 1024 * 1024
MAX_REPORTS = 5_000
JSON, NDJSON = "application/json", "application/x-ndjson"
_READ_BYTES = 64 * 1024
# Of what a packed body may refer back to, as a power of 2: no more than the whole may be.
_ZSTD_WINDOW: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: MAX_BYTES.bit_length() - 1}
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # with gzip's own header and sum
_ARRAY = re.compile(rb"[ \t\r\n]*\[")
_BLANK = re.compile(r"[ \t\r\n]*")
_THEN = re.compile(r"[ \t\r\n]*([],])[ \t\r\n]*")
# Takes what is no JSON in any reader's eyes, and makes nothing of numbers, however long they are.
_LENIENT = json.JSONDecoder(strict=False, parse_int=len, parse_float=len, parse_constant=len)


class EnvelopeError(Exception):
    """Root of what can be wrong with the whole."""


class Unsupported(EnvelopeError):
    """A packing or a type that is not read here."""


class TooMuch(EnvelopeError):
    """More than is taken at once."""


class Malformed(EnvelopeError):
    """Not what it is said to be."""


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Unpacker(Protocol):
    """Of one packed stretch, as zlib and zstd have it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /, max_length: int) -> bytes: ...


def read(stream: Stream, packing: str) -> bytes:
    """All of *stream*, unpacked; *packing* is what Content-Encoding says.

    Raises:
        EnvelopeError: it is packed otherwise, or larger than ``MAX_BYTES``, packed or not.
    """
    if packing in {"", "identity"}:
        return _joined(_pieces(stream))
    if packing not in _UNPACKERS:
        known = ", ".join([*_UNPACKERS, "identity"])
        raise Unsupported(f"Content-Encoding: expected one of {known}, got {packing[:60]!r}")
    make, broken = _UNPACKERS[packing]
    try:
        return _joined(_unpacked(_pieces(stream), make))
    except broken as error:
        raise Malformed(f"cannot be unpacked by {packing}: {error}") from None


def _pieces(stream: Stream) -> Iterator[bytes]:
    """What *stream* has, piece by piece, until it is more than is taken."""
    left = MAX_BYTES
    while piece := stream.read(min(_READ_BYTES, left + 1)):
        left -= len(piece)
        if left < 0:
            raise TooMuch(f"expected at most {MAX_BYTES} bytes, got more")
        yield piece


def _joined(pieces: Iterator[bytes]) -> bytes:
    """All *pieces* together, until they are more than is taken."""
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) > MAX_BYTES:
            raise TooMuch(f"expected at most {MAX_BYTES} bytes when unpacked, got more")
    return bytes(whole)


def _unpacked(pieces: Iterator[bytes], make: Callable[[], Unpacker]) -> Iterator[bytes]:
    """What is packed in *pieces*, in pieces; one packed stretch may follow another."""
    unpacker, further = make(), MAX_REPORTS
    for piece in pieces:
        rest = piece
        while rest:
            if unpacker.eof:
                unpacker, further = make(), further - 1
            if further < 0:  # each costs time, be it empty
                raise TooMuch(f"expected at most {MAX_REPORTS} packed stretches, got more")
            yield from _given(unpacker, rest)
            rest = unpacker.unused_data if unpacker.eof else b""
    if not unpacker.eof:
        raise Malformed("what is packed ends before its end")


def _given(unpacker: Unpacker, packed: bytes) -> Iterator[bytes]:
    """What *unpacker* makes of *packed*, a bounded piece at a time: a few bytes may be gigabytes."""
    rest = packed
    while True:
        piece = unpacker.decompress(rest, max_length=_READ_BYTES)
        yield piece
        rest = getattr(unpacker, "unconsumed_tail", b"")  # zlib's; zstd keeps it to itself
        if unpacker.eof or (not rest and len(piece) < _READ_BYTES):
            return


def _gunzip() -> Any:  # its type says max_length otherwise than it is called
    return zlib.decompressobj(_GZIP_WINDOW)


def _unzstd() -> Any:
    return zstd.ZstdDecompressor(options=_ZSTD_WINDOW)


_UNPACKERS: Mapping[str, tuple[Callable[[], Unpacker], type[Exception]]] = {
    "gzip": (_gunzip, zlib.error),
    "zstd": (_unzstd, zstd.ZstdError),
}


def reports(body: bytes, media_type: str) -> list[bytes]:
    """The bytes of each report in *body*, as they came: of one, of a JSON array, or of NDJSON.

    They are not looked into, except to see where each ends.

    Raises:
        EnvelopeError: it is of another type, no array of objects, or of too many.
    """
    if media_type == NDJSON:
        return _lines(body)
    if media_type != JSON:
        raise Unsupported(f"Content-Type: expected {JSON} or {NDJSON}, got {media_type[:60]!r}")
    return _items(body) if _ARRAY.match(body) else [body]


def _lines(body: bytes) -> list[bytes]:
    if body.count(b"\n") > MAX_REPORTS:
        raise _too_many()
    lines = [line for line in body.split(b"\n") if line.strip()]
    if len(lines) > MAX_REPORTS:
        raise _too_many()
    return lines


def _items(body: bytes) -> list[bytes]:
    _left.items = MAX_REPORTS
    try:
        _COUNT.decode(body)  # before anything is made of them: eight megabytes hold millions of items
        return [bytes(item) for item in _SPLIT.decode(body)]
    except (msgspec.DecodeError, RecursionError):
        return list(_one_by_one(body))


def _one_by_one(body: bytes) -> Iterator[bytes]:
    """The items of an array in which not all is well, as far as it can be told where each ends: what is wrong
    with one is no fault of the others. Slower, and no more lenient in the end: who reads a report is strict.
    """
    text = body.decode("latin-1")  # a character a byte
    at = text.index("[") + 1
    for number in range(MAX_REPORTS):
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]  # it matches anything
        end = at + _length(text[at : at + REPORT_BYTES], number)
        yield body[at:end]
        then = _THEN.match(text, end)
        if then is None:
            raise Malformed(
                f"reports[{number}]: expected a comma or the end of the array behind it (byte {end})"
            )
        at = then.end()
        if then[1] == "]":
            if at < len(text):
                raise Malformed(f"not JSON: something follows the array (byte {at})")
            return
    raise _too_many()


def _length(text: str, number: int) -> int:
    """Of the value that *text* begins with: that of the report *number*."""
    try:
        return _LENIENT.raw_decode(text)[1]
    except RecursionError:
        raise Malformed(f"reports[{number}]: nested too deep") from None
    except ValueError as error:
        raise Malformed(f"reports[{number}]: not JSON, or more than {REPORT_BYTES} bytes: {error}") from None


def _too_many() -> TooMuch:
    return TooMuch(f"expected at most {MAX_REPORTS} reports at once, got more")


class _Left(threading.local):
    """How many more items there may be in the array that this thread reads."""

    items = 0


_left = _Left()


class _Item(msgspec.Struct):
    """An object that is not looked into, only counted."""

    def __post_init__(self) -> None:
        _left.items -= 1
        if _left.items < 0:
            raise _too_many()


_COUNT = msgspec.json.Decoder(list[_Item])
_SPLIT = msgspec.json.Decoder(list[msgspec.Raw])
