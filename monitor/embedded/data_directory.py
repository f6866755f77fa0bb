"""PostgreSQL's data directory: made in one step, found where it is, freed of what a dead server left."""

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

# Nothing of ours: the server's user may not even be able to enter our HOME.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def location(var: Path, identity: ServerUser | None) -> Path:
    """Where the data of *var* are or will be: in it, unless *identity* cannot get there.

    A link that somebody put there is followed, but not to what was relocated for another *var*: in the copy
    of a checkout the link still leads to the original's data.

    Raises:
        PreparationFailed: they are in it, and cannot be reached.
    """
    link = var / "postgres"
    relocated = places.relocated(var) / link.name
    target = link.resolve()
    if link.is_symlink() and (target == relocated or not target.is_relative_to(places.RELOCATED)):
        return target
    if identity is None or identity.can("-x", var):
        return var.resolve() / link.name
    if link.is_dir() and not link.is_symlink():
        raise PreparationFailed(
            f"PostgreSQL runs as the user {identity.uid} here and cannot reach its data in {link}. "
            "Let others pass through the directories above it (chmod o+x), or move GRIDCAST_VAR"
        )
    return relocated


class DataDirectory:
    """The data directory *data* of *var*, with one role and one database, both called *name*."""

    def __init__(
        self, var: Path, data: Path, programs: PostgresPrograms, identity: ServerUser | None, name: str
    ) -> None:
        self._var = var
        self._data = data
        self._programs = programs
        self._identity = identity
        self._name = name

    def make(self, *, sync: bool) -> None:
        """Make it unless it is there; what was left half made is made anew. *sync*: it survives a power cut.

        Raises:
            PreparationFailed: it cannot be made, or was made by another major version.
        """
        link = self._var / "postgres"
        if link.is_symlink() and link.resolve() != self._data:
            link.unlink()
        if not (self._data / "PG_VERSION").exists():
            self._make_anew(sync=sync)
        if not link.exists():
            link.symlink_to(self._data)
        self._check_version()

    def forget_dead_server(self, sockets: Path) -> None:
        """Remove the pid files of a server that is no more.

        PostgreSQL does so itself, unless another process of its user has got the pid, which it then takes for
        a server.
        """
        if not Path("/proc/self").exists():
            return
        for file in (self._data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
            with contextlib.suppress(FileNotFoundError):
                pid = file.read_text(encoding="ascii", errors="replace").partition("\n")[0].strip()
                if not (pid.isdigit() and self._is_server(int(pid))):
                    file.unlink()

    def _is_server(self, pid: int) -> bool:
        """Whether *pid* serves these data: a server works in its data directory."""
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == self._data
        except OSError:  # gone, or somebody else's
            return False

    def _make_anew(self, *, sync: bool) -> None:
        draft = self._empty_draft()
        # Trust: whoever gets through the socket's directory is root or the very user that owns these files,
        # and neither gains anything by a session. There is no other way in: no port is listened on.
        options = ["-U", self._name, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"]
        self._run([self._programs.initdb, "-D", draft, *options, *([] if sync else ["--no-sync"])])
        self._run(
            [self._programs.postgres, "--single", "-D", draft, "postgres"],
            statement=f"CREATE DATABASE {self._name} OWNER {self._name}\n",
        )
        try:
            draft.rename(self._data)
        except OSError as error:
            raise PreparationFailed(f"{self._data} is there, but is no database; move it away") from error

    def _empty_draft(self) -> Path:
        draft = self._data.with_name(f"{self._data.name}.draft")
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(mode=0o700)
        if self._identity is not None:
            os.chown(draft, self._identity.uid, self._identity.gid)
        return draft

    def _run(self, argv: Sequence[str | Path], *, statement: str = "") -> None:
        drop: DropArguments = self._identity.drop() if self._identity is not None else {}
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
        # A server for a single user ends with status 0 even if its statement failed.
        if completed.returncode != 0 or "ERROR:" in completed.stderr:
            raise PreparationFailed(
                f"{Path(argv[0]).name} failed with status {completed.returncode}: "
                f"{completed.stderr.strip()[-500:]}"
            )

    def _check_version(self) -> None:
        made_by = (self._data / "PG_VERSION").read_text(encoding="ascii").strip()
        program = str(self._programs.postgres)
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
        ours = re.search(r"\d+", said)
        if ours is None or ours[0] != made_by:
            raise PreparationFailed(
                f"{self._data} was made by PostgreSQL {made_by}, and here is {said}: "
                "dump with the old one and restore, or remove it"
            )
