"""A directory of reports that wait for delivery.

A report is removed only with a receipt, or moved to ``bad/``. Several processes may use one spool: files
appear and disappear atomically. A file is named after its run, so a run has at most one report.

Errors::

    FileSpoolError      the directory cannot be written or read; the message has the reason; temporary
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


class FileSpoolError(Exception):
    """The spool's directory cannot be written or read."""


@dataclass(frozen=True)
class SpooledReport:
    """A report in the spool: *body* is the JSON document."""

    run: uuid.UUID
    body: bytes


class FileSpool:
    """The reports in *directory*. A missing directory is created, readable by its owner only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._bad = directory / "bad"
        with _spool_errors(f"cannot make the spool {directory}"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._bad.mkdir(mode=0o700, exist_ok=True)

    def put(self, run: uuid.UUID, body: bytes) -> None:
        """Store *body* as the report of *run*, in place of an earlier report.

        The report survives the death of any process, but a power failure only after ``sync``.

        Raises:
            FileSpoolError: *body* could not be stored, for example on a full disk; no partial file is left.
        """
        with _spool_errors(f"cannot spool the report of {run} in {self._directory}"):
            _write_whole(self._file(run), body)

    def sync(self) -> None:
        """Flush all waiting reports to disk, which may take long. Raises FileSpoolError if the disk fails."""
        with _spool_errors(f"cannot write the spool {self._directory} to disk"):
            for path in [*self._oldest(None), self._directory]:
                with contextlib.suppress(FileNotFoundError):  # delivered by another process
                    _sync(path)

    def __contains__(self, run: uuid.UUID) -> bool:
        """Return whether the report of *run* is in the spool."""
        return self._file(run).exists()

    def any(self) -> bool:
        """Return whether the spool has a report."""
        with self._listing() as files:
            return any(True for _ in files)

    def pending(self, most: int | None = None) -> Iterator[SpooledReport]:
        """Yield the reports of the *most* oldest files (None: all files), oldest first.

        Files that are no reports are moved to ``bad/``.
        """
        self._remove_half_written()
        for path in self._oldest(most):
            entry = self._read(path)
            if entry is not None:
                yield entry

    def remove(self, run: uuid.UUID) -> None:
        """Remove the report of *run*. Call this only with a receipt for the report."""
        with _spool_errors(f"cannot remove the report of {run} from {self._directory}"):
            self._file(run).unlink(missing_ok=True)

    def set_aside(self, run: uuid.UUID, reason: str) -> None:
        """Move the report of *run* to ``bad/`` for inspection; write *reason* to a file beside the report."""
        if run in self:
            self._set_aside(self._file(run), reason)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Lock the spool in this context without waiting; yield False if another process has the lock.

        The lock ends with the process.
        """
        with _spool_errors(f"cannot lock the spool {self._directory}"):
            descriptor = os.open(self._directory / ".lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield _locked(descriptor)
        finally:
            os.close(descriptor)

    def _file(self, run: uuid.UUID) -> Path:
        return self._directory / f"{run}.json"

    @contextlib.contextmanager
    def _listing(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield an iterator over the files of reports, in any order."""
        with (
            _spool_errors(f"cannot read the spool {self._directory}"),
            os.scandir(self._directory) as entries,
        ):
            yield (entry for entry in entries if entry.name.endswith(".json") and entry.is_file())

    def _oldest(self, most: int | None) -> list[Path]:
        files_by_age: list[tuple[int, str]] = []
        with self._listing() as files:
            for entry in files:
                with contextlib.suppress(FileNotFoundError):  # delivered by another process
                    files_by_age.append((entry.stat().st_mtime_ns, entry.path))
        return [Path(path) for _, path in sorted(files_by_age)[:most]]

    def _read(self, path: Path) -> SpooledReport | None:
        try:
            run = uuid.UUID(path.stem)
        except ValueError:
            run = None
        if run is None or path != self._file(run):
            self._set_aside(path, "its name is not that of a run")
            return None
        with _spool_errors(f"cannot read {path}"):
            try:
                size = path.stat().st_size
                if 0 < size <= MAX_BYTES:
                    return SpooledReport(run, path.read_bytes())
            except FileNotFoundError:  # delivered by another process
                return None
        self._set_aside(path, f"expected a report of 1 to {MAX_BYTES} bytes, got {size}")
        return None

    def _set_aside(self, path: Path, reason: str) -> None:
        with _spool_errors(f"cannot set {path} aside"):
            _write_whole(self._bad / f"{path.name}.reason", f"{reason}\n".encode())
            with contextlib.suppress(FileNotFoundError):
                path.replace(self._bad / path.name)

    def _remove_half_written(self) -> None:
        """Remove partial files of killed processes; keep recent files, which a process may be writing."""
        with _spool_errors(f"cannot tidy the spool {self._directory}"):
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
def _spool_errors(action: str) -> Iterator[None]:
    """Turn an OSError into a FileSpoolError that begins with *action*, such as "cannot read x"."""
    try:
        yield
    except OSError as error:
        raise FileSpoolError(f"{action}: {error.strerror or error}") from error


def _write_whole(path: Path, data: bytes) -> None:
    """Write *data* to *path* atomically; an OSError leaves no partial file."""
    half = path.with_name(f".{path.name}.{os.getpid()}-{next(_counter)}.part")
    try:
        with half.open("xb") as file:
            file.write(data)
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
