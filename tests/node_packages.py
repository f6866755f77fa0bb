"""Packages of node: locked beside the tests that use them, and installed once in ``var``."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from monitor.core import env

VAR = Path(__file__).resolve().parents[1] / "var"
LOCK = "package-lock.json"
INSTALLED = "installed-lock.json"  # the lock of the packages that are there
# A machine without a network is told so after seconds, not minutes.
_NPM_CI = (
    *("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--engine-strict"),
    *("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=20000"),
)


class NotInstalled(Exception):
    """The packages cannot be used on this machine; the message says what is missing."""


def missing_programs() -> list[str]:
    return [program for program in ("node", "npm") if shutil.which(program) is None]


def installed(source: Path, name: str) -> Path:
    """Return the directory ``var/NAME`` with the packages that *source* locks, and its scripts beside them.

    Raises:
        NotInstalled: node or npm is missing, or npm cannot install the packages.
    """
    directory = VAR / name
    if missing := missing_programs():
        raise NotInstalled(f"missing on this machine: {', '.join(missing)}")
    if not _is_current(source, directory):
        try:
            env.make_var_directory(VAR)
            directory.mkdir(exist_ok=True)
            with (directory / "install.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # another run of tests may install them
                _install(source, directory)
        except OSError as error:
            raise NotInstalled(f"cannot install packages of node: {error}") from None
    return directory


def _copies(source: Path, directory: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file that is copied, and its copy; imports of a script are found beside the copy."""
    yield source / LOCK, directory / INSTALLED
    for script in source.glob("*.mjs"):
        yield script, directory / script.name


def _is_current(source: Path, directory: Path) -> bool:
    return all(
        copy.exists() and copy.read_bytes() == file.read_bytes() for file, copy in _copies(source, directory)
    )


def _install(source: Path, directory: Path) -> None:
    marker = directory / INSTALLED
    if not marker.exists() or marker.read_bytes() != (source / LOCK).read_bytes():
        for name in ("package.json", LOCK):
            shutil.copyfile(source / name, directory / name)
        done = subprocess.run(_NPM_CI, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line.removeprefix("npm error ") for line in done.stderr.splitlines() if line.strip()]
            raise NotInstalled(f"npm cannot install packages: {'; '.join(lines[:4])[:300]}")
    for file, copy in _copies(source, directory):
        shutil.copyfile(file, copy)
