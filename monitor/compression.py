"""How raw reports are packed: small, and for ever readable. A number says how each was.

Reports are short and alike, so that what they have in common is most of each: Zstandard is given typical
ones, ``dictionaries/report-1.txt``, to refer to. A dictionary that reports were packed by is never changed;
a better one is another packing.
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
STATE_LEVEL = 1  # of states, of which every update makes one: the next take half as much time again for 3 %
MAX_STATE_BYTES = 1 << 26
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_OPTIONS: dict[int, int] = {
    CompressionParameter.compression_level: 3,  # the next take twice the time for a tenth of the bytes
    CompressionParameter.dict_id_flag: 0,  # the packing says which
}


def pack(body: bytes) -> tuple[int, bytes]:
    """The number of the packing, and *body* packed by it."""
    return ZSTD_1, _compressor().compress(body, ZstdCompressor.FLUSH_FRAME)


def unpack(packing: int, packed: bytes) -> bytes:
    """The inverse of ``pack``, of every packing that there ever was.

    Raises:
        ValueError: any other packing, or what is no report packed so; one of more than ``MAX_BYTES`` is not.
    """
    if packing == GZIP:
        return _gunzipped(packed)
    if packing == ZSTD_1:
        return _decompressed(packed)
    raise ValueError(f"a report was packed by way {packing}, which is not known here")


def pack_state(state: bytes) -> bytes:
    """What a forecaster knows, packed: mostly numbers, which takes a third off."""
    return compress(state, STATE_LEVEL)


def unpack_state(packed: bytes) -> bytes:
    """The inverse of ``pack_state``.

    Raises:
        ValueError: it is not that.
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
    """One for all: each call begins and ends a frame, and threads take turns."""
    return ZstdCompressor(options=_OPTIONS, zstd_dict=_dictionary().as_digested_dict)


def _gunzipped(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj(_GZIP_FORMAT)
    try:
        body = unpacking.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"a packed report cannot be read: {error}") from None
    return _whole(body, is_whole=unpacking.eof)


def _decompressed(packed: bytes) -> bytes:
    unpacking = ZstdDecompressor(_dictionary())
    try:
        body = unpacking.decompress(packed, MAX_BYTES)
    except ZstdError as error:
        raise ValueError(f"a packed report cannot be read: {error}") from None
    return _whole(body, is_whole=unpacking.eof)


def _whole(body: bytes, *, is_whole: bool) -> bytes:
    if not is_whole:
        raise ValueError(f"a packed report is cut off, or of more than {MAX_BYTES} bytes")
    return body
