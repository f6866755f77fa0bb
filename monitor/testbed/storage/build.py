"""Compile the emulator and its model with the system's compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from monitor.testbed.errors import MissingProgram, TestbedError
from reporters.compiled import CannotCompile, NoCompiler, compiled

SOURCES = Path(__file__).parent


def emulator(cache: Path) -> Path:
    """Return the FUSE program, compiled into *cache* unless it is there.

    Raises:
        MissingProgram: there is no C compiler, fusermount3 or libfuse3 with its headers.
    """
    if shutil.which("fusermount3") is None:
        raise MissingProgram("cannot mount: fusermount3 is not installed (Debian: fuse3)")
    return _compiled(cache, "emulator", ["emulator.c", "model.c"], [*_fuse_options(), "-lm", "-pthread"])


def model_library(cache: Path) -> Path:
    """Return the model as a shared library. Raises MissingProgram without a C compiler."""
    return _compiled(cache, "model.so", ["model.c"], ["-shared", "-fPIC", "-lm"])


def _fuse_options() -> list[str]:
    try:
        found = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        raise MissingProgram(
            "cannot compile: libfuse3 is not installed (Debian: libfuse3-dev, pkg-config)"
        ) from None
    return found.stdout.split()


def _compiled(cache: Path, name: str, sources: Sequence[str], options: Sequence[str]) -> Path:
    texts = {source: (SOURCES / source).read_text(encoding="utf-8") for source in ("model.h", *sources)}
    try:
        return compiled(cache, name, texts, ["-std=c11", "-Wall", "-Wextra", *options])
    except NoCompiler as error:
        raise MissingProgram(str(error)) from None
    except CannotCompile as error:
        raise TestbedError(str(error)) from None
