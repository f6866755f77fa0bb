"""Find and run pg_dump and pg_restore."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg.conninfo
from django.db import connection

from monitor.operations.embedded.binaries import postgres_directories
from reporters import process

TIMEOUT_SECONDS = 24 * 3600.0
VERSION_TIMEOUT_SECONDS = 10.0
_TAIL_CHARACTERS = 1_000
_OPTIONS_OF_DJANGO = {"pool", "isolation_level", "server_side_binding", "assume_role", "prepare_threshold"}


class DumpError(Exception):
    """A PostgreSQL program is missing or failed; the message says why."""


@dataclass(frozen=True)
class Program:
    """A program of PostgreSQL and its major version."""

    path: Path
    major: int


def find(name: str, *, least: int, directories: Iterable[Path] | None = None) -> Program:
    """Return the oldest program *name* in *directories* whose major version is at least *least*.

    *least* is the server's version, because an older program cannot read the server's catalogue.
    *directories* defaults to all directories where PostgreSQL may be installed.

    Raises:
        DumpError: there is no such program; the message lists the versions found.
    """
    candidates = postgres_directories() if directories is None else directories
    installed = [program for directory in candidates for program in _programs_at(directory / name)]
    suitable = [program for program in installed if program.major >= least]
    if not suitable:
        versions = ", ".join(f"{program.path} ({program.major})" for program in installed) or "none at all"
        raise DumpError(
            f"expected {name} of PostgreSQL {least} or newer, as the server is, and found {versions}. "
            f"Install the package postgresql-client-{least} (Debian, Ubuntu) or postgresql{least} (Fedora, "
            "RHEL)"
        )
    return min(suitable, key=lambda program: program.major)


def _programs_at(path: Path) -> Iterator[Program]:
    if not path.is_file():
        return
    try:
        result = process.run([str(path), "--version"], timeout_seconds=VERSION_TIMEOUT_SECONDS, guarded=False)
    except process.ProcessError:
        return
    version = re.search(r"\d+", result.stdout)
    if version is not None:
        yield Program(path, int(version[0]))


def run(program: Program, *arguments: str) -> None:
    """Run *program* on the depot's database until it ends.

    Raises:
        DumpError: the program failed, and none of its processes is left.
    """
    database = connection.settings_dict
    argv = [str(program.path), *arguments, f"--dbname={_conninfo()}", "--no-password"]
    # The password is never on the command line, which every user of the host can read.
    password = {"PGPASSWORD": database["PASSWORD"]} if database["PASSWORD"] else {}
    try:
        result = process.run(argv, timeout_seconds=TIMEOUT_SECONDS, env={**os.environ, **password})
    except process.ProcessError as error:
        raise DumpError(f"{program.path.name} on {database['NAME']}: {error}") from error
    if result.returncode:
        tail = result.stderr.strip()[-_TAIL_CHARACTERS:]
        raise DumpError(f"{program.path.name} on {database['NAME']} ended with {result.returncode}: {tail}")


def _conninfo() -> str:
    """Return the connection string of the depot without the password."""
    database = connection.settings_dict
    options = {key: value for key, value in database["OPTIONS"].items() if key not in _OPTIONS_OF_DJANGO}
    parameters = {
        "dbname": database["NAME"],
        "host": database["HOST"],
        "port": database["PORT"],
        "user": database["USER"],
        **options,
    }
    return psycopg.conninfo.make_conninfo(**{key: value for key, value in parameters.items() if value})
