"""A copy of the project's source, for tests that add files to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_HIDDEN = {".ci"}  # others are caches, and of tools
_STATE = {"var"}


def copy_source(directory: Path) -> None:
    for source in ROOT.iterdir():
        if source.name in _STATE or (source.name.startswith(".") and source.name not in _HIDDEN):
            continue
        if source.is_dir():
            # With byte code, which is valid in the copy, but for that being written by another process.
            shutil.copytree(source, directory / source.name, ignore=shutil.ignore_patterns("*.pyc.*"))
        else:
            shutil.copy(source, directory / source.name)


def environment_of_copy() -> dict[str, str]:
    """Return the environment of programs in a copy, without the options of the pytest that runs this."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    environment["DJANGO_SETTINGS_MODULE"] = "monitor.settings"
    environment["PYTHONPATH"] = "client"
    return environment


def run_python(directory: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = environment_of_copy()
    return subprocess.run(
        [sys.executable, *argv], cwd=directory, capture_output=True, text=True, check=False, env=environment
    )
