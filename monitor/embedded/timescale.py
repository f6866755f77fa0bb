"""TimescaleDB for our own PostgreSQL, where somebody has its files.

Nothing is put into the server's own directories: PostgreSQL 18 is told where else to look.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from . import PreparationFailed
from .binaries import PostgresPrograms
from .server_user import ServerUser

VARIABLE = "GRIDCAST_TIMESCALEDB"
FILES = ("share/extension/timescaledb.control", "lib/timescaledb.so")
LEAST_VERSION = 18  # the first that looks for extensions outside of its own directories


def settings(directory: Path, programs: PostgresPrograms, identity: ServerUser | None) -> dict[str, str]:
    """What PostgreSQL, run by *identity*, has to be told to load TimescaleDB from *directory*.

    Raises:
        PreparationFailed: its files are not there or cannot be read, or PostgreSQL is too old.
    """
    _check_version(programs)
    files = [directory / name for name in FILES]
    _check_there(files)
    _check_readable(files, identity)
    return {
        "extension_control_path": f"{directory / 'share'}:$system",
        "dynamic_library_path": f"{directory / 'lib'}:$libdir",
        "shared_preload_libraries": "timescaledb",
        "timescaledb.telemetry_level": "off",
        "timescaledb.max_background_workers": "0",  # it has no jobs of ours
    }


def _check_version(programs: PostgresPrograms) -> None:
    argv = [str(programs.postgres), "--version"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    version = re.search(r"\d+", said)
    if version is None or int(version[0]) < LEAST_VERSION:
        raise PreparationFailed(
            f"{VARIABLE}: expected PostgreSQL {LEAST_VERSION} or newer, which takes extensions from "
            f"anywhere, but {programs.postgres} is {said}"
        )


def _check_there(files: list[Path]) -> None:
    for file in files:
        if not file.is_file():
            raise PreparationFailed(
                f"{VARIABLE}: looked for TimescaleDB's files {' and '.join(FILES)}, and there is no {file}"
            )


def _check_readable(files: list[Path], identity: ServerUser | None) -> None:
    for file in files:
        if identity is not None and not identity.can("-r", file):
            raise PreparationFailed(
                f"{VARIABLE}: PostgreSQL runs as the user {identity.uid} here and cannot read {file}. "
                "Let others read it and pass through the directories above it (chmod o+rx)"
            )
