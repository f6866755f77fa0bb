"""The files of a reporter between two starts: its identity, keys, assignment, spool and status.

The directory belongs to the user of the reporter; no other user can write to it, or replace a directory
above it. Files are replaced atomically, also on NFS: a reader finds the old content or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reporters.fields import Unfit, parse_object
from reporters.path_chain import unsafe_reason

IDENTITY = "identity.json"
ASSIGNMENT = "assignment.json"  # the signed document in force
PENDING_ASSIGNMENT = "assignment.pending.json"  # one that waits for the operator's approval
HIGHEST_ASSIGNMENT = "assignment.highest.json"  # which version was accepted last
STATUS = "status.json"
SITE_POLICY = "site-policy.json"
LOG = "agent.log"
_MAX_FILE_BYTES = 8 * 1024 * 1024


class StateError(Exception):
    """The directory or a file in it cannot be used; the message has the reason and a remedy."""


class StateDirectory:
    """The directory at *path*. ``create`` makes it; ``open`` expects it to exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> StateDirectory:
        """Return the directory, made with mode 700 if it is missing.

        Raises:
            StateError: it cannot be made, or other users can write to it or replace it.
        """
        _refuse_replaceable(path)  # before anything is made there
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"cannot make the state directory {path}: {error.strerror}") from None
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> StateDirectory:
        """Return the existing directory.

        Raises:
            StateError: it is missing, or other users can write to it or replace it.
        """
        try:
            state = path.stat()
        except OSError as error:
            hint = "run `enrol` first, or name the directory with --state"
            raise StateError(f"cannot use the state directory {path}: {error.strerror}; {hint}") from None
        if not stat.S_ISDIR(state.st_mode):
            raise StateError(f"cannot use the state directory {path}: it is not a directory")
        if state.st_uid != os.geteuid():
            raise StateError(f"cannot use the state directory {path}: it belongs to user {state.st_uid}")
        if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise StateError(
                f"cannot use the state directory {path}: other users can write to it; run: chmod 700 {path}"
            )
        _refuse_replaceable(path)
        return cls(path)

    @property
    def spool(self) -> Path:
        return self.path / "spool"

    @property
    def refused(self) -> Path:
        return self.path / "refused"

    def read(self, name: str) -> bytes | None:
        """Return the content of the file *name*, or None if there is none.

        Raises:
            StateError: it cannot be read, or is larger than any file of the reporter.
        """
        file = self.path / name
        try:
            with file.open("rb") as stream:
                data = stream.read(_MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"cannot read {file}: {error.strerror}") from None
        if len(data) > _MAX_FILE_BYTES:
            raise StateError(f"cannot use {file}: it has more than {_MAX_FILE_BYTES} bytes")
        return data

    def version(self, name: str) -> tuple[int, ...]:
        """Return numbers that change when the file *name* is replaced; empty if it cannot be seen."""
        try:
            status = (self.path / name).stat()
        except OSError:
            return ()
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def read_object(self, name: str) -> dict[str, Any] | None:
        """Return the JSON object in the file *name*, or None if there is no such file.

        Raises:
            StateError: it cannot be read or is no JSON object.
        """
        data = self.read(name)
        if data is None:
            return None
        try:
            return parse_object(data, max_bytes=_MAX_FILE_BYTES)
        except Unfit as error:
            raise StateError(f"cannot use {self.path / name}: {error}") from None

    def write(self, name: str, data: bytes, *, flushes: bool = True) -> None:
        """Replace the file *name* by *data*, readable by its owner only, and flush it to disk.

        Without *flushes*, a power failure may damage the file: for one that the next start writes anyway.

        Raises:
            StateError: it cannot be written; the old content stays.
        """
        file = self.path / name
        draft = file.with_name(f".{name}.{os.getpid()}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as stream:  # noqa: PTH123  # of a descriptor
                stream.write(data)
                stream.flush()
                if flushes:
                    os.fsync(descriptor)
            draft.replace(file)
            if flushes:
                _sync_entries(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise StateError(f"cannot write {file}: {error.strerror}") from None

    def append(self, name: str, data: bytes) -> None:
        """Add *data* to the end of the file *name*, which exists, and flush it to disk.

        Raises:
            StateError: it cannot be written; a part of *data* may be there.
        """
        try:
            descriptor = os.open(self.path / name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            with open(descriptor, "ab", buffering=0) as stream:  # noqa: PTH123  # of a descriptor
                written_bytes = stream.write(data)
                if written_bytes != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
        except OSError as error:
            raise StateError(f"cannot write {self.path / name}: {error.strerror}") from None

    def write_object(self, name: str, document: Mapping[str, Any], *, flushes: bool = True) -> None:
        """Replace the file *name* by *document* as JSON, like ``write``."""
        self.write(name, f"{json.dumps(document, indent=1)}\n".encode(), flushes=flushes)

    def remove(self, name: str) -> None:
        """Remove the file *name* if there is one. Raises StateError if it stays."""
        try:
            (self.path / name).unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StateError(f"cannot remove {self.path / name}: {error.strerror}") from None


def _refuse_replaceable(path: Path) -> None:
    if reason := unsafe_reason(path):
        raise StateError(f"cannot use the state directory {path}: {reason}")


def _sync_entries(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
