"""How raw reports are packed: small, and for ever readable. A number says how each was."""

from __future__ import annotations

import gzip

GZIP = 0


def pack(body: bytes) -> tuple[int, bytes]:
    """The number of the packing, and *body* packed by it."""
    return GZIP, gzip.compress(body, mtime=0)


def unpack(packing: int, packed: bytes) -> bytes:
    """The inverse of ``pack``, of every packing that there ever was. Raises ValueError for any other."""
    if packing == GZIP:
        return gzip.decompress(packed)
    raise ValueError(f"a report was packed by way {packing}, which is not known here")
