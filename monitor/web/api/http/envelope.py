"""Decompress the body of a request within bounds, and split it into the bytes of each report.

Independent of Django and of the database. At most ``MAX_BYTES`` of a body are held uncompressed, and at most
``MAX_REPORTS`` reports are split from it.

Errors::

    EnvelopeError       the whole body is refused; a retry gives the same answer
    |-- Unsupported     the encoding or type is not supported; the message names the supported ones
    |-- TooMuch         the body has more bytes or reports than one request may have; names the limit
    `-- MalformedBody   the body cannot be decompressed or split into reports
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

from monitor.operations.web_server.limits import MOST_BODY_BYTES
from reporters.report import MAX_BYTES as REPORT_BYTES

MAX_BYTES = MOST_BODY_BYTES
MAX_REPORTS = 5_000
JSON, NDJSON = "application/json", "application/x-ndjson"
_READ_BYTES = 64 * 1024
# The largest window of a compressed body, as a power of 2: no larger than the whole body may be.
_ZSTD_WINDOW: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: MAX_BYTES.bit_length() - 1}
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # with gzip's header and checksum
_ARRAY = re.compile(rb"[ \t\r\n]*\[")
_BLANK = re.compile(r"[ \t\r\n]*")
_THEN = re.compile(r"[ \t\r\n]*([],])[ \t\r\n]*")
# Accepts more than JSON, and does not convert numbers, whose length is unlimited.
_LENIENT = json.JSONDecoder(strict=False, parse_int=len, parse_float=len, parse_constant=len)


class EnvelopeError(Exception):
    """The body as a whole is refused."""


class Unsupported(EnvelopeError):
    """The Content-Encoding or Content-Type is not supported."""


class TooMuch(EnvelopeError):
    """The body has more bytes or reports than a request may have."""


class MalformedBody(EnvelopeError):
    """The body is not what its headers declare."""


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Unpacker(Protocol):
    """The decompressor of one frame: the common interface of zlib and zstd."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /, max_length: int) -> bytes: ...


def read(stream: Stream, packing: str) -> bytes:
    """Return the bytes of *stream*, decompressed; *packing* is its Content-Encoding.

    Raises:
        EnvelopeError: *packing* is unknown, the bytes are not in this encoding, or the decompressed body is
            larger than ``MAX_BYTES``.
    """
    if packing in {"", "identity"}:
        return _joined(_pieces(stream))
    if packing not in _UNPACKERS:
        encodings = ", ".join([*_UNPACKERS, "identity"])
        raise Unsupported(f"Content-Encoding: expected one of {encodings}, got {packing[:60]!r}")
    make, broken = _UNPACKERS[packing]
    try:
        return _joined(_unpacked(_pieces(stream), make))
    except broken as error:
        raise MalformedBody(f"cannot be decompressed by {packing}: {error}") from None


def _pieces(stream: Stream) -> Iterator[bytes]:
    """Yield *stream* in pieces. Raises TooMuch beyond ``MAX_BYTES``."""
    left = MAX_BYTES
    while piece := stream.read(min(_READ_BYTES, left + 1)):
        left -= len(piece)
        if left < 0:
            raise TooMuch(f"expected at most {MAX_BYTES} bytes, got more")
        yield piece


def _joined(pieces: Iterator[bytes]) -> bytes:
    """Join *pieces*. Raises TooMuch beyond ``MAX_BYTES``."""
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) > MAX_BYTES:
            raise TooMuch(f"expected at most {MAX_BYTES} bytes when decompressed, got more")
    return bytes(whole)


def _unpacked(pieces: Iterator[bytes], make: Callable[[], Unpacker]) -> Iterator[bytes]:
    """Yield the decompressed *pieces*, which may contain several frames in succession.

    *make* creates the decompressor of a frame.
    """
    unpacker, frames_left = make(), MAX_REPORTS
    for piece in pieces:
        rest = piece
        while rest:
            if unpacker.eof:
                unpacker, frames_left = make(), frames_left - 1
            if frames_left < 0:  # an empty frame costs time too
                raise TooMuch(f"expected at most {MAX_REPORTS} compressed frames, got more")
            yield from _decompressed(unpacker, rest)
            rest = unpacker.unused_data if unpacker.eof else b""
    if not unpacker.eof:
        raise MalformedBody("the compressed data end too early")


def _decompressed(unpacker: Unpacker, packed: bytes) -> Iterator[bytes]:
    """Yield *packed*, decompressed in bounded pieces: a few bytes may expand to gigabytes."""
    rest = packed
    while True:
        piece = unpacker.decompress(rest, max_length=_READ_BYTES)
        yield piece
        rest = getattr(unpacker, "unconsumed_tail", b"")  # zlib returns unread input; zstd buffers it
        if unpacker.eof or (not rest and len(piece) < _READ_BYTES):
            return


def _gunzip() -> Any:  # its stub names the parameter max_length differently
    return zlib.decompressobj(_GZIP_WINDOW)


def _unzstd() -> Any:
    return zstd.ZstdDecompressor(options=_ZSTD_WINDOW)


_UNPACKERS: Mapping[str, tuple[Callable[[], Unpacker], type[Exception]]] = {
    "gzip": (_gunzip, zlib.error),
    "zstd": (_unzstd, zstd.ZstdError),
}


def reports(body: bytes, media_type: str) -> list[bytes]:
    """Return the bytes of each report in *body*: a single report, a JSON array, or NDJSON.

    The reports are only delimited here; the caller parses each of them.

    Raises:
        EnvelopeError: *media_type* is unsupported, the array is malformed, or there are too many reports.
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
        _COUNT.decode(body)  # count first: eight megabytes can hold millions of items
        return [bytes(item) for item in _SPLIT.decode(body)]
    except (msgspec.DecodeError, RecursionError):
        return list(_one_by_one(body))


def _one_by_one(body: bytes) -> Iterator[bytes]:
    """Yield the bytes of each item of an array that the strict parser refuses.

    One invalid item must not prevent the others from being stored. This lenient, slower parser finds the ends
    of items that are almost JSON, and yields their bytes too: the caller validates each item strictly and
    refuses the invalid ones. If it cannot find the end of an item, the whole body is refused.

    Raises:
        MalformedBody: the end of an item is not found, or neither a comma nor a bracket follows it.
        TooMuch: the array has more than ``MAX_REPORTS`` items.
    """
    text = body.decode("latin-1")  # one character per byte
    at = text.index("[") + 1
    for number in range(MAX_REPORTS):
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]  # the pattern matches the empty string
        end = at + _length(text[at : at + REPORT_BYTES], number)
        yield body[at:end]
        then = _THEN.match(text, end)
        if then is None:
            raise MalformedBody(
                f"reports[{number}]: expected a comma or the end of the array after it (byte {end})"
            )
        at = then.end()
        if then[1] == "]":
            if at < len(text):
                raise MalformedBody(f"not JSON: data after the array (byte {at})")
            return
    raise _too_many()


def _length(text: str, number: int) -> int:
    """Return the length of the JSON value at the start of *text*; *number* is its place in the array."""
    try:
        return _LENIENT.raw_decode(text)[1]
    except RecursionError:
        raise MalformedBody(f"reports[{number}]: nested too deeply") from None
    except ValueError as error:
        raise MalformedBody(
            f"reports[{number}]: not JSON, or more than {REPORT_BYTES} bytes: {error}"
        ) from None


def _too_many() -> TooMuch:
    return TooMuch(f"expected at most {MAX_REPORTS} reports in one request, got more")


class _ItemsLeft(threading.local):
    """The number of further items that the decoder accepts in the array that this thread is decoding."""

    items = 0


_left = _ItemsLeft()


class _CountedItem(msgspec.Struct):
    """An item of an array, which the decoder counts without parsing it."""

    def __post_init__(self) -> None:
        _left.items -= 1
        if _left.items < 0:
            raise _too_many()


_COUNT = msgspec.json.Decoder(list[_CountedItem])
_SPLIT = msgspec.json.Decoder(list[msgspec.Raw])
