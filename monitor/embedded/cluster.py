"""PostgreSQL's data directory: made in one step, found where it is, freed of what a dead server left."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import PreparationFailed, places
from .binaries import PostgresPrograms
from .identity import Identity


def location(var: Path, identity: Identity | None) -> Path:
    """Where the data of *var* are or will be: in it, unless *identity* cannot get there.

    Raises:
        PreparationFailed: they are in it, and cannot be reached.
    """
    link = var / "postgres"
    if link.is_symlink() and link.resolve().parent.is_dir():
        return link.resolve()
    if identity is None or identity.can("-x", var):
        return link.resolve()
    if link.is_dir() and not link.is_symlink():
        raise PreparationFailed(
            f"PostgreSQL runs as the user {identity.uid} here and cannot reach its data in {link}. "
            "Let others pass through the directories above it (chmod o+x), or move GRIDCAST_VAR"
        )
    return places.relocated(var) / "postgres"


def make(
    var: Path,
    data: Path,
    programs: PostgresPrograms,
    identity: Identity | None,
    *,
    name: str,
    environment: Mapping[str, str],
    sync: bool,
) -> None:
    """Make *data* with a role and a database *name*, unless it is there; a half-made one is made anew.

    Raises:
        PreparationFailed: it cannot be made, or was made by another major version.
    """
    if not (data / "PG_VERSION").exists():
        if identity is not None and data.parent != var.resolve():
            places.relocated_made(var)
        draft = _empty_draft(data, identity)
        run = _Runner(programs, identity, environment)
        # Trust: whoever gets through the socket's directory is root or the very user that owns these files, and
        # neither gains anything by a session. There is no other way in: no port is listened on.
        options = ["-U", name, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"]
        run([str(programs.initdb), "-D", str(draft), *options, *([] if sync else ["--no-sync"])])
        run(
            [str(programs.postgres), "--single", "-D", str(draft), "postgres"],
            f"CREATE DATABASE {name} OWNER {name}\n",
        )
        _rename(draft, data)
    link = var / "postgres"
    if link.resolve() != data:
        link.unlink(missing_ok=True)
        link.symlink_to(data)
    _check_version(data, programs)


def forget_dead_server(data: Path, sockets: Path) -> None:
    """Remove the pid files of a server that is no more.

    PostgreSQL does so itself unless the pid has gone to another process of its user, which it takes for a server.
    """
    for file in (data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
        with contextlib.suppress(FileNotFoundError):
            pid = file.read_text(encoding="ascii", errors="replace").partition("\n")[0].strip()
            if Path("/proc/self").exists() and not (pid.isdigit() and _works_in(int(pid), data)):
                file.unlink()


def _works_in(pid: int, data: Path) -> bool:
    """Whether *pid* is a server of *data*: they work in their data directory."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == data
    except OSError:  # gone, or somebody else's
        return False


class _Runner:
    """Runs a program of PostgreSQL as the user that it must be."""

    def __init__(
        self, programs: PostgresPrograms, identity: Identity | None, environment: Mapping[str, str]
    ) -> None:
        self._drop = identity.drop() if identity is not None else {}
        self._environment = environment

    def __call__(self, argv: Sequence[str], text: str | None = None) -> None:
        completed = subprocess.run(
            argv,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            cwd="/",
            env=self._environment,
            check=False,
            **self._drop,
        )
        if completed.returncode != 0 or "ERROR:" in completed.stderr:
            raise PreparationFailed(
                f"{Path(argv[0]).name} failed with status {completed.returncode}: {completed.stderr.strip()[-500:]}"
            )


def _empty_draft(data: Path, identity: Identity | None) -> Path:
    draft = data.with_name(f"{data.name}.draft")
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(mode=0o700)
    if identity is not None:
        os.chown(draft, identity.uid, identity.gid)
    return draft


def _rename(draft: Path, data: Path) -> None:
    try:
        draft.rename(data)
    except OSError as error:
        raise PreparationFailed(
            f"{data} is there, but no database: it has no PG_VERSION; move it away ({error})"
        ) from error


def _check_version(data: Path, programs: PostgresPrograms) -> None:
    made_by = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    said = subprocess.run([programs.postgres, "--version"], capture_output=True, text=True, check=True).stdout
    ours = re.search(r"(\d+)", said)
    if ours is None or ours[1] != made_by:
        raise PreparationFailed(
            f"{data} was made by PostgreSQL {made_by}, and here is {said.strip()}: "
            "dump with the old one and restore, or remove it"
        )
