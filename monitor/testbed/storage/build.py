"""Compile the emulator and its model with the system's compiler."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from monitor.testbed.errors import MissingProgram, TestbedError

SOURCES = Path(__file__).parent
_COMPILER_SECONDS = 120.0
_OPTIONS = ("-O2", "-std=c11", "-Wall", "-Wextra")


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
    program = shutil.which("pkg-config")
    found = _run([program, "--cflags", "--libs", "fuse3"]) if program else None
    if found is None or found.returncode:
        raise MissingProgram("cannot compile: libfuse3 is not installed (Debian: libfuse3-dev, pkg-config)")
    return found.stdout.split()


def _compiled(cache: Path, name: str, sources: Sequence[str], options: Sequence[str]) -> Path:
    """Return *name* in *cache*, under the hash of all sources and options. Concurrent callers may all
    compile it."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise MissingProgram("cannot compile: there is no C compiler, cc (Debian: gcc, libc6-dev)")
    digest = hashlib.sha256(" ".join([compiler, *options]).encode())
    for source in ("model.h", *sources):
        digest.update((SOURCES / source).read_bytes())
    target = cache / f"{digest.hexdigest()[:16]}-{name}"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        made = Path(scratch, name)
        paths = [str(SOURCES / source) for source in sources]
        result = _run([compiler, *_OPTIONS, "-o", str(made), *paths, *options])
        if result.returncode:
            raise TestbedError(f"cannot compile {name}: {result.stderr.strip() or 'cc failed'}")
        made.replace(target)
    return target


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_COMPILER_SECONDS, check=False)
