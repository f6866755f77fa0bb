"""Files of the spool: written whole, flushed to disk, and the error of all operations."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

_counter = itertools.count()


class SpoolError(Exception):
    """The spool's directory cannot be written or read; the message has the reason; temporary."""


@contextlib.contextmanager
def spool_errors(action: str) -> Iterator[None]:
    """Turn an OSError into a SpoolError that begins with *action*, such as "cannot read x"."""
    try:
        yield
    except OSError as error:
        raise SpoolError(f"{action}: {error.strerror or error}") from error


def write_whole(path: Path, data: bytes, *, is_durable: bool) -> None:
    """Write *data* to *path* atomically; an OSError leaves no partial file.

    With *is_durable* the file survives a power failure.
    """
    half = path.with_name(f".{path.name}.{os.getpid()}-{next(_counter)}.part")
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_at(descriptor, 0, data)
            if is_durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        half.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            half.unlink()
        raise
    if is_durable:
        sync(path.parent)


def write_at(descriptor: int, offset: int, data: bytes) -> None:
    """Write all of *data* at *offset*: a call of ``pwrite`` may write less."""
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, data[written:], offset + written)


def read_from(path: Path, offset: int) -> bytes:
    """Return the content of *path* from *offset* on."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read()


def sync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems flush directories by themselves
            raise
    finally:
        os.close(descriptor)
