"""The archive that this process runs from, or from whose unpacked copy."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import reporters

COPY_DIGEST = "reporters/remote/archive.sha256"  # in an unpacked copy
_PIECE_BYTES = 65536


def path() -> Path | None:
    """Return the archive, or None if the process runs from a directory."""
    archive = getattr(reporters.__loader__, "archive", None)
    return None if archive is None else Path(archive)


@functools.cache  # an upgrade replaces the file, and this process still runs the old one
def sha256() -> str:
    """Return the SHA-256 of the archive in hex, which identifies its version; empty for a source tree."""
    archive, digest = path(), hashlib.sha256()
    try:
        if archive is None:
            return (Path(__file__).parents[2] / COPY_DIGEST).read_text(encoding="ascii")
        with archive.open("rb") as stream:
            while piece := stream.read(_PIECE_BYTES):  # the agent keeps the memory that it once needed
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()
