"""PostgreSQL's data directory: its location, its atomic creation, and the removal of stale pid files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import PreparationFailed, places
from .binaries import PostgresPrograms
from .server_user import DropArguments, ServerUser

# Without our HOME: the server's user may have no permission to enter it.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def data_location(var: Path, user: ServerUser | None) -> Path:
    """Return the directory for PostgreSQL's data: below *var*, or relocated if *user* cannot enter *var*.

    A symbolic link is followed, except to the relocated data of another *var*: in a copied checkout the link
    still points to the data of the original.

    Raises:
        PreparationFailed: the data are below *var*, and *user* cannot reach them.
    """
    link = var / "postgres"
    relocated = places.relocation(var) / link.name
    target = link.resolve()
    if link.is_symlink() and (target == relocated or not target.is_relative_to(places.RELOCATED)):
        return target
    if user is None or user.can("-x", var):
        return var.resolve() / link.name
    if link.is_dir() and not link.is_symlink():
        raise PreparationFailed(
            f"PostgreSQL runs as user {user.uid} and cannot reach its data in {link}. "
            "Make the directories above it executable for others (chmod o+x), or move GRIDCAST_VAR"
        )
    return relocated


class DataDirectory:
    """PostgreSQL's data directory *data* of the state directory *var*.

    It contains one role and one database, both called *name*.
    """

    def __init__(
        self, var: Path, data: Path, programs: PostgresPrograms, user: ServerUser | None, name: str
    ) -> None:
        self._var = var
        self._data = data
        self._programs = programs
        self._user = user
        self._name = name

    def make(self, *, sync: bool) -> None:
        """Create the data directory unless it exists; replace an incomplete one.

        With *sync* the new directory survives a power failure.

        Raises:
            PreparationFailed: the directory cannot be created, or another major version of PostgreSQL has
                created it.
        """
        link = self._var / "postgres"
        if link.is_symlink() and link.resolve() != self._data:
            link.unlink()
        if not (self._data / "PG_VERSION").exists():
            self._create(sync=sync)
        if not link.exists():
            link.symlink_to(self._data)
        self._check_version()

    def remove_stale_pid_files(self, sockets: Path) -> None:
        """Remove the pid files of a server that has ended.

        PostgreSQL removes them itself, unless another process of the same user now has the server's pid.
        """
        if not Path("/proc/self").exists():
            return
        for file in (self._data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
            with contextlib.suppress(FileNotFoundError):
                pid = file.read_text(encoding="ascii", errors="replace").partition("\n")[0].strip()
                if not (pid.isdigit() and self._is_server(int(pid))):
                    file.unlink()

    def _is_server(self, pid: int) -> bool:
        """Return whether *pid* serves this directory: a server's working directory is its data directory."""
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == self._data
        except OSError:  # ended, or of another user
            return False

    def _create(self, *, sync: bool) -> None:
        draft = self._empty_draft()
        # "trust" adds no access: the directory of the only socket admits root and the owner of these files.
        options = ["-U", self._name, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"]
        self._run([self._programs.initdb, "-D", draft, *options, *([] if sync else ["--no-sync"])])
        self._run(
            [self._programs.postgres, "--single", "-D", draft, "postgres"],
            statement=f"CREATE DATABASE {self._name} OWNER {self._name}\n",
        )
        try:
            draft.rename(self._data)
        except OSError as error:
            raise PreparationFailed(f"{self._data} exists, but is not a database; move it away") from error

    def _empty_draft(self) -> Path:
        draft = self._data.with_name(f"{self._data.name}.draft")
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(mode=0o700)
        if self._user is not None:
            os.chown(draft, self._user.uid, self._user.gid)
        return draft

    def _run(self, argv: Sequence[str | Path], *, statement: str = "") -> None:
        drop: DropArguments = self._user.drop() if self._user is not None else {}
        completed = subprocess.run(
            argv,
            input=statement,
            capture_output=True,
            text=True,
            cwd="/",
            env=ENVIRONMENT,
            check=False,
            **drop,
        )
        # In single-user mode the server exits with status 0 even if the statement failed.
        if completed.returncode != 0 or "ERROR:" in completed.stderr:
            raise PreparationFailed(
                f"{Path(argv[0]).name} failed with status {completed.returncode}: "
                f"{completed.stderr.strip()[-500:]}"
            )

    def _check_version(self) -> None:
        created_by = (self._data / "PG_VERSION").read_text(encoding="ascii").strip()
        program = str(self._programs.postgres)
        version_text = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
        version = re.search(r"\d+", version_text)
        if version is None or version[0] != created_by:
            raise PreparationFailed(
                f"{self._data} was created by PostgreSQL {created_by}, but the programs here are "
                f"{version_text}: dump with the old version and restore, or remove the directory"
            )
