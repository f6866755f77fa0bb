"""Preloaded libraries: compiled once, and the programs that they cannot reach."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

from probes.common.kernels import kernel_source
from reporters.account import own_home
from reporters.compiled import compiled

_PROGRAM_HEADER_INTERPRETER = 3


def preloaded(cache: Path, kernel: str) -> Path:
    """Return the library of *kernel* for this machine, compiled into *cache* unless it is there.

    Raises:
        CannotCompile: there is no C compiler, or it fails.
    """
    options = ("-std=gnu11", "-shared", "-fPIC", "-ldl", "-lpthread")
    return compiled(cache, f"{kernel}.so", {f"{kernel}.c": kernel_source(kernel)}, options)


def user_cache() -> Path:
    """Return the directory where libraries of this user are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or own_home() / ".cache", "gridcast")


def unreachable(program: str) -> str:
    """Return why no library can be preloaded into *program*, or nothing if one can."""
    path = shutil.which(program)
    if path is None:
        return ""  # the error comes from running it
    try:
        with Path(path).open("rb") as file:
            head, mode = file.read(4096), os.fstat(file.fileno()).st_mode
    except OSError:
        return ""
    if mode & 0o6000:
        return "it changes its user or group, so the system preloads nothing"
    if head[:4] == b"\x7fELF" and not _has_interpreter(head):
        return "it is a static program"
    return ""


def _has_interpreter(head: bytes) -> bool:
    """Return whether an ELF program has a dynamic loader."""
    is_wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    try:
        offset = struct.unpack_from(order + ("Q" if is_wide else "I"), head, 32 if is_wide else 28)[0]
        size, count = struct.unpack_from(order + "HH", head, 54 if is_wide else 42)
        return any(
            struct.unpack_from(order + "I", head, offset + number * size)[0] == _PROGRAM_HEADER_INTERPRETER
            for number in range(count)
        )
    except struct.error:  # the headers are further back: no ordinary static program has them there
        return True
