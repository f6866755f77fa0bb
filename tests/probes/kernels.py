"""The C kernels of probes, built and run here."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from probes.common.kernels import kernel_source

HEADERS = ("checked", "tomography")


def build(directory: Path, kernel: str, options: Sequence[str] = ("-O2",)) -> Path:
    """Compile a kernel, warnings being errors; the path of the executable."""
    for header in HEADERS:
        (directory / f"{header}.h").write_text(kernel_source(header, suffix=".h"))
    source, executable = directory / f"{kernel}.c", directory / kernel
    source.write_text(kernel_source(kernel))
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
    subprocess.run(["cc", *strict, *options, "-o", executable, source, "-lm"], check=True)
    return executable


def run(*argv: object) -> str:
    """Run a kernel that must do its work; what it prints."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=True)
    return done.stdout


def refusal(*argv: object) -> str:
    """Run a kernel that must not do its work, and must say why in one line."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def compiler_that_copies(built: Path, *, unless: str = "") -> str:
    """The script of a ``cc`` at a site that takes the executable from *built*, which is quicker.

    *unless* is shell code that comes first; the executable to make is ``$out``.
    """
    return f"""
for word; do case $previous in -o) out=$word ;; esac; previous=$word; done
{unless}
cp "{built}/${{out##*/}}" "$out"
"""
