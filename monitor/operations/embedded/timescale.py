"""Load TimescaleDB into the embedded PostgreSQL from a given directory.

No file is copied into the server's directories: PostgreSQL 18 has settings for further search paths.
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
LEAST_VERSION = 18  # the first with extension_control_path


def settings(directory: Path, programs: PostgresPrograms, user: ServerUser | None) -> dict[str, str]:
    """Return the settings with which PostgreSQL, run by *user*, loads TimescaleDB from *directory*.

    Raises:
        PreparationFailed: files are missing or unreadable, or PostgreSQL is too old.
    """
    _check_version(programs)
    files = [directory / name for name in FILES]
    _check_exist(files)
    _check_readable(files, user)
    return {
        "extension_control_path": f"{directory / 'share'}:$system",
        "dynamic_library_path": f"{directory / 'lib'}:$libdir",
        "shared_preload_libraries": "timescaledb",
        "timescaledb.telemetry_level": "off",
        "timescaledb.max_background_workers": "0",  # gridcast uses no TimescaleDB jobs
    }


def _check_version(programs: PostgresPrograms) -> None:
    argv = [str(programs.postgres), "--version"]
    version_text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    version = re.search(r"\d+", version_text)
    if version is None or int(version[0]) < LEAST_VERSION:
        raise PreparationFailed(
            f"{VARIABLE}: expected PostgreSQL {LEAST_VERSION} or newer, which has extension_control_path, "
            f"but {programs.postgres} is {version_text}"
        )


def _check_exist(files: list[Path]) -> None:
    for file in files:
        if not file.is_file():
            raise PreparationFailed(
                f"{VARIABLE}: expected TimescaleDB's files {' and '.join(FILES)}, but {file} does not exist"
            )


def _check_readable(files: list[Path], user: ServerUser | None) -> None:
    for file in files:
        if user is not None and not user.can("-r", file):
            raise PreparationFailed(
                f"{VARIABLE}: PostgreSQL runs as user {user.uid} and cannot read {file}. "
                "Make it readable and the directories above it executable for others (chmod o+rx)"
            )
