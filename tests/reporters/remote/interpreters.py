"""The Python interpreters of this machine, to run the reporter with."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.by_night import by_night

SUPPORTED = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
TOO_OLD = ["3.7", "3.8"]
# The oldest and the newest that most machines have; the others by night.
SUPPORTED_MOSTLY_BY_NIGHT = [
    version if version in {"3.9", "3.13"} else by_night(version) for version in SUPPORTED
]
_SHOW_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


@functools.cache
def interpreters() -> dict[str, str]:
    """Return the path of one interpreter of each version, by the version, such as "3.9"."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [shutil.which(f"python{version}") for version in (*TOO_OLD, *SUPPORTED)]
    candidates += [shutil.which("python3"), *_installed(pyenv)]
    found: dict[str, str] = {}
    for path in filter(None, candidates):
        done = subprocess.run([path, "-c", _SHOW_VERSION], capture_output=True, text=True, check=False)
        if done.returncode == 0:  # pyenv has programs that only say which version to choose
            found.setdefault(done.stdout.strip(), path)
    return found


def interpreter(version: str) -> str:
    """Return the path of the interpreter of *version*; skip the test if there is none."""
    path = interpreters().get(version)
    if path is None:
        pytest.skip(f"there is no Python {version}")
    return path


def _installed(versions: Path) -> list[str]:
    """Return the interpreters below *versions*; none if it is another user's."""
    if not os.access(versions, os.R_OK | os.X_OK):
        return []
    return [str(path) for path in sorted(versions.glob("3.*/bin/python"))]
