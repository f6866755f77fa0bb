"""Back up the depot as of one instant while it is in use. A backup is either complete or absent."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import connection, transaction

from monitor.core.db import server_version
from monitor.core.units import humanised
from monitor.operations.backup import manifest, pg_tools

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from monitor.operations.backup.manifest import Manifest

DUMP = "dump"
_SNAPSHOT = "SELECT pg_export_snapshot()"
_SIZE = "SELECT pg_database_size(current_database())"
COMPRESSION_RATIO = 2  # a lower bound: a dump has no indexes and is compressed


class BackupError(Exception):
    """The backup failed and nothing is left of the attempt; the message says why."""


def back_up(
    target: Path, now: datetime, *, jobs: int = 1, directories: Iterable[Path] | None = None
) -> Manifest:
    """Write the depot's database and a manifest to the new directory *target*; return the manifest.

    *now* is recorded as the time of the backup. pg_dump is searched for in *directories* (default: all
    directories where PostgreSQL may be installed) and uses *jobs* connections. Must not be called in a
    transaction.

    Raises:
        BackupError, pg_tools.DumpError: the backup failed, and nothing of it is left.
    """
    draft = target.with_name(f".{target.name}.draft-{os.getpid()}")
    try:
        _check_target(target)
        program = pg_tools.find("pg_dump", least=server_version.major(), directories=directories)
        _check_space(target.parent)
        draft.mkdir(mode=0o700)
        written = _dump(draft, program, now, jobs)
        _sync(draft / manifest.FILE)
        _sync(draft)
        draft.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise BackupError(f"cannot write {target}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return written


def _check_target(target: Path) -> None:
    if target.exists():
        raise BackupError(f"{target} exists already; a backup never overwrites anything")
    if not target.parent.is_dir():
        raise BackupError(f"there is no directory {target.parent}")


def _check_space(directory: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SIZE)
        needed = int(cursor.fetchone()[0]) // COMPRESSION_RATIO
    free = shutil.disk_usage(directory).free
    if free < needed:
        need, have = humanised(needed, "bytes"), humanised(free, "bytes")
        raise BackupError(f"a backup may take {need}, and {directory} has {have} free")


def _dump(draft: Path, program: pg_tools.Program, now: datetime, jobs: int) -> Manifest:
    """Dump the database to *draft* with a manifest of the same snapshot; return the manifest."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(_SNAPSHOT)
            (snapshot,) = cursor.fetchone()
        described = manifest.describe(now, dumped_by=program.major)
        options = ["--format=directory", f"--jobs={jobs}", f"--snapshot={snapshot}", f"--file={draft / DUMP}"]
        pg_tools.run(program, *options, "--no-owner", "--no-privileges")
    (draft / manifest.FILE).write_text(described.text(), encoding="utf-8")
    return described


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
