"""Compile and run the C kernels of probes on this host."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from probes.common.kernels import kernel_source

HEADERS = ("checked", "tomography")


def build(directory: Path, kernel: str, options: Sequence[str] = ("-O2",)) -> Path:
    """Compile a kernel with warnings as errors; return the path of the executable."""
    for header in HEADERS:
        (directory / f"{header}.h").write_text(kernel_source(header, suffix=".h"))
    source, executable = directory / f"{kernel}.c", directory / kernel
    source.write_text(kernel_source(kernel))
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
    subprocess.run(["cc", *strict, *options, "-o", executable, source, "-lm"], check=True)
    return executable


def run(*argv: object) -> str:
    """Run a kernel that must succeed; return its output."""
    completed = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=True)
    return completed.stdout


def refusal(*argv: object) -> str:
    """Run a kernel that must fail with a message of one line; return the message."""
    completed = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    assert completed.returncode == 1, completed
    assert completed.stderr.count("\n") == 1, completed.stderr
    return completed.stderr


def copying_compiler(built: Path, *, unless: str = "") -> str:
    """Return the script of a fast ``cc`` that copies the compiled kernel from the directory *built*.

    *unless* is shell code that runs first and may exit; ``$out`` is the path of the executable.
    """
    return f"""
for word; do case $previous in -o) out=$word ;; esac; previous=$word; done
{unless}
cp "{built}/${{out##*/}}" "$out"
"""
