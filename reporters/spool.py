"""A directory of reports that wait to be delivered. A report leaves it only with a receipt, or to ``bad/``.

Several processes may use one spool: files appear and vanish whole. A file is named after its run, so that a
run has one report at most.

Errors::

    SpoolError      the directory cannot be written or read; says why        again
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reporters.report import MAX_BYTES

_STALE_SECONDS = 3600.0
_counter = itertools.count()


class SpoolError(Exception):
    """The spool's directory cannot be written or read."""


@dataclass(frozen=True)
class SpooledReport:
    """One report that waits."""

    run: uuid.UUID
    body: bytes


class Spool:
    """The reports in *directory*, which is made when it is missing (readable by its owner only)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._bad = directory / "bad"
        with _said(f"cannot make the spool {directory}"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._bad.mkdir(mode=0o700, exist_ok=True)

    def put(self, run: uuid.UUID, body: bytes) -> None:
        """Store *body* as the report of *run*, whoever is killed from now on. It replaces an earlier one.

        A machine that loses its power may lose it until ``sync``.

        Raises:
            SpoolError: it could not be stored (disk full ...); nothing half written is left.
        """
        with _said(f"cannot spool the report of {run} in {self._directory}"):
            _write_whole(self._file(run), body)

    def sync(self) -> None:
        """Have all that waits on disk when this returns: it may have to wait for long. Raises SpoolError."""
        with _said(f"cannot write the spool {self._directory} to disk"):
            for path in [*self._oldest(None), self._directory]:
                with contextlib.suppress(FileNotFoundError):  # delivered by somebody else meanwhile
                    _sync(path)

    def __contains__(self, run: uuid.UUID) -> bool:
        """Whether the report of *run* waits."""
        return self._file(run).exists()

    def any(self) -> bool:
        """Whether a report waits."""
        with self._listing() as files:
            return any(True for _ in files)

    def pending(self, most: int | None = None) -> Iterator[SpooledReport]:
        """What waits, oldest first, at most *most* files. What cannot be a report is set aside on the way."""
        self._remove_half_written()
        for path in self._oldest(most):
            entry = self._read(path)
            if entry is not None:
                yield entry

    def remove(self, run: uuid.UUID) -> None:
        """Forget the report of *run*: its receipt is there."""
        with _said(f"cannot remove the report of {run} from {self._directory}"):
            self._file(run).unlink(missing_ok=True)

    def set_aside(self, run: uuid.UUID, reason: str) -> None:
        """Move the report of *run* to ``bad/``, where somebody can look at it, the *reason* beside it."""
        if run in self:
            self._set_aside(self._file(run), reason)

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield whether nobody else is in such a block of this spool. A process that dies leaves it."""
        with _said(f"cannot lock the spool {self._directory}"):
            descriptor = os.open(self._directory / ".lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield _locked(descriptor)
        finally:
            os.close(descriptor)

    def _file(self, run: uuid.UUID) -> Path:
        return self._directory / f"{run}.json"

    @contextlib.contextmanager
    def _listing(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The files that wait, in no order."""
        with _said(f"cannot read the spool {self._directory}"), os.scandir(self._directory) as entries:
            yield (entry for entry in entries if entry.name.endswith(".json") and entry.is_file())

    def _oldest(self, most: int | None) -> list[Path]:
        found: list[tuple[int, str]] = []
        with self._listing() as files:
            for entry in files:
                with contextlib.suppress(FileNotFoundError):  # delivered by somebody else meanwhile
                    found.append((entry.stat().st_mtime_ns, entry.path))
        return [Path(path) for _, path in sorted(found)[:most]]

    def _read(self, path: Path) -> SpooledReport | None:
        try:
            run = uuid.UUID(path.stem)
        except ValueError:
            run = None
        if run is None or path != self._file(run):
            self._set_aside(path, "its name does not say which run it is the report of")
            return None
        with _said(f"cannot read {path}"):
            try:
                size = path.stat().st_size
                if 0 < size <= MAX_BYTES:
                    return SpooledReport(run, path.read_bytes())
            except FileNotFoundError:  # delivered by somebody else meanwhile
                return None
        self._set_aside(path, f"expected a report of 1 to {MAX_BYTES} bytes, got {size}")
        return None

    def _set_aside(self, path: Path, reason: str) -> None:
        with _said(f"cannot set {path} aside"):
            _write_whole(self._bad / f"{path.name}.reason", f"{reason}\n".encode())
            with contextlib.suppress(FileNotFoundError):
                path.replace(self._bad / path.name)

    def _remove_half_written(self) -> None:
        """Remove what a killed process was writing. A young file may be somebody's who still writes."""
        with _said(f"cannot tidy the spool {self._directory}"):
            for path in self._directory.glob(".*.part"):
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                        path.unlink()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _said(what: str) -> Iterator[None]:
    """Turn an OSError into a SpoolError that says *what* could not be done."""
    try:
        yield
    except OSError as error:
        raise SpoolError(f"{what}: {error.strerror or error}") from error


def _write_whole(path: Path, data: bytes) -> None:
    """Write *data* so that *path* either has all of it or does not exist. Raises OSError."""
    half = path.with_name(f".{path.name}.{os.getpid()}-{next(_counter)}.part")
    try:
        with half.open("xb") as file:
            file.write(data)
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    """Make a file, or the names in a directory, survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
