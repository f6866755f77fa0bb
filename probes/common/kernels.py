"""Kernels: C programs that a probe compiles at a site. The sources are in ``probes/kernels``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from probes.base import ProbeFailed
from probes.common import files
from probes.grid import Grid, Location

COMPILE_TIMEOUT_SECONDS = 300.0
_STANDARD = ("-std=gnu99",)  # the default of compilers before 2015 is C89


def build_kernel(
    grid: Grid,
    resource: str,
    kernel: str,
    *,
    options: Sequence[str] = ("-O2",),
    libraries: Sequence[str] = (),
    headers: Sequence[str] = (),
    compiler: str = "cc",
) -> str:
    """Compile ``kernels/<kernel>.c`` at *resource* and return the path of the executable.

    *headers* names each ``kernels/<header>.h`` that the source includes. An MPI *compiler* is possible.
    """
    source, executable = f"{grid.scratch(resource)}/{kernel}.c", f"{grid.scratch(resource)}/{kernel}"
    shell = grid.shell(resource)
    for header in headers:
        file = Location(resource, f"{grid.scratch(resource)}/{header}.h")
        files.write_file(grid, file, kernel_source(header, suffix=".h"))
    files.write_file(grid, Location(resource, source), kernel_source(kernel))
    shell.check(
        [compiler, *_STANDARD, *options, "-o", executable, source, *libraries],
        timeout_seconds=COMPILE_TIMEOUT_SECONDS,
        doing=f"compile {kernel}.c",
    )
    return executable


def build_native_kernel(
    grid: Grid, resource: str, kernel: str, *, libraries: Sequence[str] = (), headers: Sequence[str] = ()
) -> str:
    """Compile like ``build_kernel`` with ``-O3``, and ``-march=native`` if the compiler accepts that."""

    def build(*options: str) -> str:
        return build_kernel(
            grid, resource, kernel, options=("-O3", *options), libraries=libraries, headers=headers
        )

    try:
        return build("-march=native")
    except ProbeFailed as error:
        if error.exit_status is None:  # not a refusal by the compiler
            raise
        grid.log(f"{error}; retrying without -march=native", "warning")
        return build()


def kernel_source(kernel: str, *, suffix: str = ".c") -> str:
    """Return the source of *kernel*. It is read as a package resource, since a reporter may be a zip file."""
    return (resources.files("probes") / "kernels" / f"{kernel}{suffix}").read_text(encoding="utf-8")
