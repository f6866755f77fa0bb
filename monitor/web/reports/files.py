"""The files that a report is written to: checked before the report is computed, replaced at its end."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

_PREFIX = ".gridcast-"  # of a draft beside the file


class NotWritten(Exception):
    """A file cannot be written; the message names it and the reason. No file has changed."""


def check_writable(file: Path) -> None:
    """Check that *file* can be created or replaced.

    Raises:
        NotWritten: its directory is missing or read-only, or *file* is read-only or no regular file.
    """
    if file.exists() and not file.is_file():
        raise NotWritten(f"cannot write {file}: it is not a regular file")
    if file.exists() and not os.access(file, os.W_OK):
        raise NotWritten(f"cannot write {file}: it is read-only")
    _write({file: b""}, replaces=False)


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Replace each file by its content; a reader, and a crash, find the old content or the new one.

    Raises:
        NotWritten: a file cannot be written, for example as the disk is full.
    """
    _write(contents, replaces=True)


def _write(contents: Mapping[Path, bytes], *, replaces: bool) -> None:
    """Write each content beside its file; when all are on disk, and if *replaces*, replace the files."""
    with contextlib.ExitStack() as drafts:
        ready = [(drafts.enter_context(_draft(file, content)), file) for file, content in contents.items()]
        for draft, file in ready if replaces else ():
            draft.replace(file.resolve())


@contextlib.contextmanager
def _draft(file: Path, content: bytes) -> Iterator[Path]:
    """Write *content* beside *file*, with its permissions; afterwards delete it where it still is."""
    try:
        target = file.resolve()
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, dir=target.parent)
    except OSError as error:
        raise NotWritten(f"cannot write {file}: {error.strerror or error}") from error
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        yield draft
    except OSError as error:
        raise NotWritten(f"cannot write {file}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
