"""Replace a file so that a reader, and a crash, find the old content or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(file: Path, data: bytes, mode: int, *, flushes: bool = True) -> None:
    """Replace *file* by *data* with the permissions *mode*, and flush it to disk.

    Without *flushes*, a power failure in the next half minute may leave an empty file.

    Raises:
        OSError: *file* cannot be written; the old content stays.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with draft.open("wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(data)
            stream.flush()
            if flushes:
                os.fsync(stream.fileno())
        draft.replace(file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
