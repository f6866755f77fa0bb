"""Compress raw reports and forecast states.

A number stored with each report names its compression format, so that the report can be read for ever.
Reports are short and similar: Zstandard gets a dictionary of typical reports
(``dictionaries/report-1.txt``). A dictionary in use must never change; a better dictionary is a new format.
"""

from __future__ import annotations

import functools
import sys
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

ZSTD_1 = 1
STATE_LEVEL = 1  # every update compresses a state: level 2 takes half as long again and saves 3 %
MAX_STATE_BYTES = 1 << 26
_OPTIONS: dict[int, int] = {
    CompressionParameter.compression_level: 3,  # level 4 takes twice as long and saves a tenth
    CompressionParameter.dict_id_flag: 0,  # the format says which
}


def pack(body: bytes) -> tuple[int, bytes]:
    """Return the number of the current format and the compressed *body*."""
    return ZSTD_1, _compressor().compress(body, ZstdCompressor.FLUSH_FRAME)


def unpack(packing: int, packed: bytes) -> bytes:
    """Return the body that ``pack`` has compressed to *packed*, in the format *packing*.

    Raises:
        ValueError: the format is unknown, or the data are damaged or unpack to more than ``MAX_BYTES``.
    """
    if packing != ZSTD_1:
        raise ValueError(f"unknown compression format {packing} of a report")
    decompressor = ZstdDecompressor(_dictionary())
    try:
        body = decompressor.decompress(packed, MAX_BYTES)
    except ZstdError as error:
        raise ValueError(f"a packed report cannot be read: {error}") from None
    if not decompressor.eof:
        raise ValueError(f"a packed report is truncated, or has more than {MAX_BYTES} bytes")
    return body


def pack_state(state: bytes) -> bytes:
    """Compress the state of a forecaster; states are mostly numbers, so compression saves only a third."""
    return compress(state, STATE_LEVEL)


def unpack_state(packed: bytes) -> bytes:
    """Return the state that ``pack_state`` has compressed to *packed*.

    Raises:
        ValueError: *packed* is no compressed state.
    """
    try:
        return ZstdDecompressor().decompress(packed, MAX_STATE_BYTES)
    except ZstdError as error:
        raise ValueError(f"a packed state cannot be read: {error}") from None


@functools.cache
def _dictionary() -> ZstdDict:
    text = files("monitor.core").joinpath("dictionaries/report-1.txt").read_bytes()
    return ZstdDict(text, is_raw=True)


@functools.cache
def _compressor() -> ZstdCompressor:
    """Return the shared compressor; each of its calls returns a complete frame, and threads take turns."""
    return ZstdCompressor(options=_OPTIONS, zstd_dict=_dictionary().as_digested_dict)
