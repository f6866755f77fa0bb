"""Compile C sources on this machine, once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from reporters.error_lines import decisive_line
from reporters.path_chain import unsafe_reason

_SECONDS = 120.0


class CannotCompile(Exception):
    """The compiler refused the sources; the message has its first error."""


class NoCompiler(CannotCompile):
    """There is no C compiler."""


def compiled(cache: Path, name: str, sources: Mapping[str, str], options: Sequence[str]) -> Path:
    """Return *name*, compiled from *sources* (texts by file name) into *cache* unless it is there.

    It is kept under the hash of all that it depends on. Concurrent callers may each compile it. It is
    executed, so a *cache* into which another user could have put it is refused.

    Raises:
        NoCompiler: it must be compiled, and there is no ``cc``.
        CannotCompile: ``cc`` fails, or another user could replace *cache*.
    """
    if reason := unsafe_reason(cache.absolute()):
        raise CannotCompile(f"cannot use the compiled {name} in {cache}: {reason}")
    parts = [os.uname().machine, *options, *(part for item in sources.items() for part in item)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    target = cache / f"{digest[:16]}-{name}"
    if target.exists():
        return target
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler(f"cannot compile {name}: there is no C compiler, cc (Debian: gcc, libc6-dev)")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for file, text in sources.items():
            Path(scratch, file).write_text(text, encoding="utf-8")
        result = subprocess.run(
            [compiler, "-O2", "-o", name, *(file for file in sources if file.endswith(".c")), *options],
            cwd=scratch,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
        if result.returncode:
            reason = decisive_line(result.stderr) or f"cc ended with status {result.returncode}"
            raise CannotCompile(f"cannot compile {name}: {reason}")
        Path(scratch, name).replace(target)
    return target
