"""Steps that several probes share: checks before the start, files, checksums, kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from probes.base import Grid, Location, ProbeFailed, in_parallel

CHECKSUM_TIMEOUT_SECONDS = 600.0
COMPILE_TIMEOUT_SECONDS = 300.0
GENERATE_TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class Needs:
    """What a run needs at one resource before it may start."""

    scratch_bytes: int
    tools: Sequence[str]


def check_resources(grid: Grid, needs: Mapping[str, Needs]) -> None:
    """Check all resources at once: login, scratch space, tools. Each failing check is an error of its own."""

    def check(resource: str) -> None:
        grid.check_credentials(resource)
        grid.check_scratch(resource, needs[resource].scratch_bytes)
        grid.check_tools(resource, needs[resource].tools)

    in_parallel(check, needs)


def random_file(grid: Grid, target: Location, size_bytes: int) -> None:
    """Make a file of *size_bytes* random bytes."""
    argv = [
        "dd",
        "if=/dev/urandom",
        f"of={target.path}",
        "bs=1048576",
        f"count={size_bytes}",
        "iflag=fullblock,count_bytes",
        "status=none",
    ]
    grid.shell(target.resource).check(
        argv, timeout_seconds=GENERATE_TIMEOUT_SECONDS, doing=f"make a file of {size_bytes} bytes"
    )


def sha256(grid: Grid, file: Location) -> str:
    """The SHA-256 of *file*, computed where it lies, as 64 hexadecimal digits."""
    answer = grid.shell(file.resource).check(
        ["sha256sum", file.path], timeout_seconds=CHECKSUM_TIMEOUT_SECONDS, doing=f"checksum {file.path}"
    )
    return parse_sha256sum(answer, file.resource)[file.path]


def parse_sha256sum(text: str, resource: str) -> dict[str, str]:
    """Parse the output of ``sha256sum``: path -> digest. Names that it would escape are not ours."""
    sums = {}
    for line in text.splitlines():
        digest, separator, path = line.partition("  ")
        if not separator or len(digest) != 64:
            raise ProbeFailed(f"unreadable output of sha256sum at {resource}: {line!r}", resource=resource)
        sums[path] = digest
    return sums


def build_kernel(grid: Grid, resource: str, kernel: str) -> str:
    """Compile ``kernels/<kernel>.c`` at *resource*; return the path of the executable there."""
    source, executable = f"{grid.scratch(resource)}/{kernel}.c", f"{grid.scratch(resource)}/{kernel}"
    shell = grid.shell(resource)
    write_file(grid, Location(resource, source), kernel_source(kernel))
    shell.check(
        ["cc", "-O2", "-o", executable, source],
        timeout_seconds=COMPILE_TIMEOUT_SECONDS,
        doing=f"compile {kernel}.c",
    )
    return executable


def kernel_source(kernel: str) -> str:
    """The C source of a kernel; read as a resource, so that it is found inside a zipped reporter too."""
    return resources.files("probes").joinpath("kernels", f"{kernel}.c").read_text(encoding="utf-8")


def write_file(grid: Grid, target: Location, text: str) -> None:
    """Write a small text file."""
    grid.shell(target.resource).check(
        ["sh", "-c", 'cat > "$1"', "sh", target.path],
        timeout_seconds=60.0,
        doing=f"write {target.path}",
        input=text,
    )
