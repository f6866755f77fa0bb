"""A file system that is soon full."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_file_system(directory: Path, mebibytes: int, mode: str = "755") -> Iterator[None]:
    """Mount a file system of *mebibytes* on *directory* in this context; skip the test without root."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode={mode}", "small", str(directory)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
