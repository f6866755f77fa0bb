"""The preloaded library that asks for tokens, compiled once, and the programs that it cannot reach."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from probes.common.kernels import kernel_source
from reporters.tokens.server import TokensUnavailable

_COMPILER_SECONDS = 120.0
_PROGRAM_HEADER_INTERPRETER = 3


def library(cache: Path) -> Path:
    """Return the library for this machine, compiled into *cache* unless it is there.

    Raises:
        TokensUnavailable: there is no C compiler, or it fails.
    """
    source = kernel_source("iotokens")
    target = cache / f"iotokens-{hashlib.sha256(source.encode()).hexdigest()[:16]}-{os.uname().machine}.so"
    if target.exists():
        return target
    compiler = shutil.which("cc")
    if compiler is None:
        raise TokensUnavailable("cannot compile the library of tokens: there is no C compiler, cc")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        file, made = Path(scratch, "iotokens.c"), Path(scratch, "iotokens.so")
        file.write_text(source, encoding="utf-8")
        result = subprocess.run(
            [compiler, "-O2", "-std=gnu11", "-shared", "-fPIC", "-o", made, file, "-ldl", "-lpthread"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILER_SECONDS,
            check=False,
        )
        if result.returncode:
            last_line = (result.stderr.strip() or "cc failed").splitlines()[-1]
            raise TokensUnavailable(f"cannot compile the library of tokens: {last_line}")
        made.replace(target)
    return target


def unreachable(program: str) -> str:
    """Return why the library cannot limit *program*, or nothing if it can."""
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
