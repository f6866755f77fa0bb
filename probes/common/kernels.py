"""Kernels: C programs that a probe compiles at a site. Their sources are in ``probes/kernels``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from probes.base import ProbeFailed
from probes.common import files
from probes.grid import Grid, Location

COMPILE_TIMEOUT_SECONDS = 300.0
_STANDARD = ("-std=gnu99",)  # compilers before 2015 take C for that of 1989


def build_kernel(
    grid: Grid,
    resource: str,
    kernel: str,
    *,
    options: Sequence[str] = ("-O2",),
    libraries: Sequence[str] = (),
    headers: Sequence[str] = (),
) -> str:
    """Compile ``kernels/<kernel>.c`` at *resource*; return the path of the executable there.

    *headers* are the names of those ``kernels/<header>.h`` that it includes.
    """
    source, executable = f"{grid.scratch(resource)}/{kernel}.c", f"{grid.scratch(resource)}/{kernel}"
    shell = grid.shell(resource)
    for header in headers:
        file = Location(resource, f"{grid.scratch(resource)}/{header}.h")
        files.write_file(grid, file, kernel_source(header, suffix=".h"))
    files.write_file(grid, Location(resource, source), kernel_source(kernel))
    shell.check(
        ["cc", *_STANDARD, *options, "-o", executable, source, *libraries],
        timeout_seconds=COMPILE_TIMEOUT_SECONDS,
        doing=f"compile {kernel}.c",
    )
    return executable


def build_native_kernel(
    grid: Grid, resource: str, kernel: str, *, libraries: Sequence[str] = (), headers: Sequence[str] = ()
) -> str:
    """Like ``build_kernel``, for the very processor of *resource*, where its compiler can do that."""

    def build(*options: str) -> str:
        return build_kernel(
            grid, resource, kernel, options=("-O3", *options), libraries=libraries, headers=headers
        )

    try:
        return build("-march=native")
    except ProbeFailed as error:
        if error.exit_status is None:  # it was not the compiler that refused
            raise
        grid.log(f"{error}; once more without -march=native", "warning")
        return build()


def kernel_source(kernel: str, *, suffix: str = ".c") -> str:
    """The C source of a kernel; read as a resource, so that it is found inside a zipped reporter too."""
    return resources.files("probes").joinpath("kernels", f"{kernel}{suffix}").read_text(encoding="utf-8")
