"""Back the depot up, as it is at one instant, while it is in use: whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import connection, transaction

from monitor.backup import manifest, pg_tools
from monitor.db import server_version
from monitor.units import humanised

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from monitor.backup.manifest import Manifest

DUMP = "dump"
_SNAPSHOT = "SELECT pg_export_snapshot()"
_SIZE = "SELECT pg_database_size(current_database())"
SMALLER = 2  # indexes are not written, and what is, is compressed


class BackupError(Exception):
    """It was not backed up, and nothing is left of the attempt; says why."""


def back_up(
    target: Path, now: datetime, *, jobs: int = 1, programs: Iterable[Path] | None = None
) -> Manifest:
    """Write all of the depot's database, and what it has, to the new directory *target*, by *jobs* at once.

    To be called outside of any transaction. *programs*: the directories in which PostgreSQL's may be.

    Raises:
        BackupError, dumping.DumpError: there is no backup.
    """
    draft = target.with_name(f".{target.name}.draft-{os.getpid()}")
    try:
        _check_place(target)
        program = pg_tools.find("pg_dump", least=server_version.major(), directories=programs)
        _check_space(target.parent)
        draft.mkdir(mode=0o700)
        made = _write(draft, program, now, jobs)
        _sync(draft / manifest.FILE)
        _sync(draft)
        draft.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise BackupError(f"cannot write {target}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


def _check_place(target: Path) -> None:
    if target.exists():
        raise BackupError(f"{target} is there already; nothing is ever overwritten")
    if not target.parent.is_dir():
        raise BackupError(f"there is no directory {target.parent}")


def _write(draft: Path, program: pg_tools.Program, now: datetime, jobs: int) -> Manifest:
    """The program sees what this transaction sees, and so does who counts."""
    with transaction.atomic():
        snapshot = _frozen()
        made = manifest.manifest(now, dumped_by=program.major)
        options = ["--format=directory", f"--jobs={jobs}", f"--snapshot={snapshot}", f"--file={draft / DUMP}"]
        pg_tools.run(program, *options, "--no-owner", "--no-privileges")
    (draft / manifest.FILE).write_text(made.text(), encoding="utf-8")
    return made


def _frozen() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(_SNAPSHOT)
        return str(cursor.fetchone()[0])


def _check_space(directory: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SIZE)
        needed = int(cursor.fetchone()[0]) // SMALLER
    free = shutil.disk_usage(directory).free
    if free < needed:
        need, have = humanised(needed, "bytes"), humanised(free, "bytes")
        raise BackupError(f"a backup may take {need}, and {directory} has {have} free")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
