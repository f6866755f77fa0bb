"""PostgreSQL's own programs that write a database to files and read it again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg.conninfo
from django.db import connection

from monitor.embedded.binaries import postgres_directories
from reporters import process

LIMIT_SECONDS = 24 * 3600.0
VERSION_SECONDS = 10.0
_TAIL_CHARACTERS = 1_000
_OPTIONS_OF_DJANGO = {"pool", "isolation_level", "server_side_binding", "assume_role", "prepare_threshold"}


class DumpError(Exception):
    """A program of PostgreSQL did not do it; says which, what was tried, and what came back."""


@dataclass(frozen=True)
class Program:
    """A program of PostgreSQL, of a major version."""

    path: Path
    major: int


def find(name: str, *, least: int, directories: Iterable[Path] | None = None) -> Program:
    """The program *name* of version *least*, or of the first after it: older ones do not know what the newer
    server has.

    Raises:
        DumpError: there is none; says which there are.
    """
    places = postgres_directories() if directories is None else directories
    found = [program for place in places for program in _looked_up(place / name)]
    fit = [program for program in found if program.major >= least]
    if not fit:
        have = ", ".join(f"{program.path} ({program.major})" for program in found) or "none at all"
        raise DumpError(
            f"expected {name} of PostgreSQL {least} or newer, as the server is, and found {have}. Install "
            f"the package postgresql-client-{least} (Debian, Ubuntu) or postgresql{least} (Fedora, RHEL)"
        )
    return min(fit, key=lambda program: program.major)


def _looked_up(path: Path) -> Iterator[Program]:
    if not path.is_file():
        return
    try:
        said = process.run([str(path), "--version"], timeout_seconds=VERSION_SECONDS, guarded=False).stdout
    except process.ProcessError:
        return
    version = re.search(r"\d+", said)
    if version is not None:
        yield Program(path, int(version[0]))


def run(program: Program, *arguments: str, database: str | None = None) -> None:
    """Run it on the depot's database, or on another *database* of its server, to its end.

    Raises:
        DumpError: it failed; nothing of it is left running.
    """
    told = connection.settings_dict
    argv = [str(program.path), *arguments, f"--dbname={_conninfo(database)}", "--no-password"]
    # Never on the command line, which everybody can read.
    environment = {**os.environ, **({"PGPASSWORD": told["PASSWORD"]} if told["PASSWORD"] else {})}
    try:
        done = process.run(argv, timeout_seconds=LIMIT_SECONDS, env=environment)
    except process.ProcessError as error:
        raise DumpError(f"{program.path.name} on {told['NAME']}: {error}") from error
    if done.returncode:
        tail = done.stderr.strip()[-_TAIL_CHARACTERS:]
        raise DumpError(f"{program.path.name} on {told['NAME']} ended with {done.returncode}: {tail}")


def _conninfo(database: str | None) -> str:
    """All but the password."""
    told = connection.settings_dict
    options = {key: value for key, value in told["OPTIONS"].items() if key not in _OPTIONS_OF_DJANGO}
    parameters = {
        "dbname": database or told["NAME"],
        "host": told["HOST"],
        "port": told["PORT"],
        "user": told["USER"],
        **options,
    }
    return psycopg.conninfo.make_conninfo(**{key: value for key, value in parameters.items() if value})
