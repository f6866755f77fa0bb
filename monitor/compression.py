"""Compress raw reports and forecast states.

A number stored with each report names its compression format, so that it can be read for ever. Reports are
short and similar: Zstandard gets a dictionary of typical ones (``dictionaries/report-1.txt``). A dictionary
in use must never change; a better one is a new format.
"""

from __future__ import annotations

import functools
import sys
import zlib
from importlib.resources import files

from reporters.report import MAX_BYTES

if sys.version_info >= (3, 14):
    from compression.zstd import (
        CompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdDict,
        ZstdError,
        compress,
    )
else:
    from backports.zstd import (
        CompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdDict,
        ZstdError,
        compress,
    )

GZIP = 0
ZSTD_1 = 1
STATE_LEVEL = 1  # every update compresses a state: level 2 takes half as long again and saves 3 %
MAX_STATE_BYTES = 1 << 26
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_OPTIONS: dict[int, int] = {
    CompressionParameter.compression_level: 3,  # level 4 takes twice as long and saves a tenth
    CompressionParameter.dict_id_flag: 0,  # the format says which
}


def pack(body: bytes) -> tuple[int, bytes]:
    """Return the number of the current format and the compressed *body*."""
    return ZSTD_1, _compressor().compress(body, ZstdCompressor.FLUSH_FRAME)


def unpack(packing: int, packed: bytes) -> bytes:
    """Return the body that ``pack`` was given, from any format.

    Raises:
        ValueError: the format is unknown, or the data are damaged or unpack to more than ``MAX_BYTES``.
    """
    if packing == GZIP:
        return _gunzipped(packed)
    if packing == ZSTD_1:
        return _decompressed(packed)
    raise ValueError(f"unknown compression format {packing} of a report")


def pack_state(state: bytes) -> bytes:
    """Compress a forecaster's state. It is mostly numbers: this saves a third."""
    return compress(state, STATE_LEVEL)


def unpack_state(packed: bytes) -> bytes:
    """Return the state that ``pack_state`` was given.

    Raises:
        ValueError: the data are no compressed state.
    """
    try:
        return ZstdDecompressor().decompress(packed, MAX_STATE_BYTES)
    except ZstdError as error:
        raise ValueError(f"a packed state cannot be read: {error}") from None


@functools.cache
def _dictionary() -> ZstdDict:
    text = files("monitor").joinpath("dictionaries/report-1.txt").read_bytes()
    return ZstdDict(text, is_raw=True)


@functools.cache
def _compressor() -> ZstdCompressor:
    """The shared compressor: each call is a complete frame, and threads take turns."""
    return ZstdCompressor(options=_OPTIONS, zstd_dict=_dictionary().as_digested_dict)


def _gunzipped(packed: bytes) -> bytes:
    decompressor = zlib.decompressobj(_GZIP_FORMAT)
    try:
        body = decompressor.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"a packed report cannot be read: {error}") from None
    return _whole(body, is_whole=decompressor.eof)


def _decompressed(packed: bytes) -> bytes:
    decompressor = ZstdDecompressor(_dictionary())
    try:
        body = decompressor.decompress(packed, MAX_BYTES)
    except ZstdError as error:
        raise ValueError(f"a packed report cannot be read: {error}") from None
    return _whole(body, is_whole=decompressor.eof)


def _whole(body: bytes, *, is_whole: bool) -> bytes:
    if not is_whole:
        raise ValueError(f"a packed report is truncated, or has more than {MAX_BYTES} bytes")
    return body
