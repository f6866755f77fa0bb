"""Remove directories, without ``shutil``: it loads the compression libraries, half a megabyte of an agent."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def remove_tree(directory: Path) -> None:
    """Remove *directory* and what it holds, as far as possible. Links are removed, not followed."""
    for parent, directories, files in os.walk(directory, topdown=False):
        for path in (Path(parent, name) for name in (*files, *directories)):
            with contextlib.suppress(OSError):
                if path.is_symlink() or not path.is_dir():
                    path.unlink()
                else:
                    path.rmdir()
    with contextlib.suppress(OSError):
        directory.rmdir()
