"""The Python interpreters of this machine, to run the reporter with."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

OLDEST, NEWEST = 9, 14  # of Python 3
_SHOW_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


@functools.cache
def interpreters() -> dict[str, str]:
    """Return the path of one interpreter of each version, by the version, such as "3.9"."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [shutil.which(f"python3.{minor}") for minor in range(OLDEST, NEWEST + 1)]
    candidates += [shutil.which("python3"), *_installed(pyenv)]
    found: dict[str, str] = {}
    for path in filter(None, candidates):
        done = subprocess.run([path, "-c", _SHOW_VERSION], capture_output=True, text=True, check=False)
        if done.returncode == 0:  # pyenv has programs that only say which version to choose
            found.setdefault(done.stdout.strip(), path)
    return found


def supported() -> list[str]:
    """Return the paths of the interpreters that the reporter supports."""
    versions = {f"3.{minor}" for minor in range(OLDEST, NEWEST + 1)}
    return [path for version, path in sorted(interpreters().items()) if version in versions]


def too_old() -> list[str]:
    """Return the paths of interpreters older than the oldest that the reporter supports."""
    return [path for version, path in interpreters().items() if int(version.split(".")[1]) < OLDEST]


def _installed(versions: Path) -> list[str]:
    """Return the interpreters below *versions*; none if it is another user's."""
    if not os.access(versions, os.R_OK | os.X_OK):
        return []
    return [str(path) for path in sorted(versions.glob("3.*/bin/python"))]
