"""What probes share: checks before the start, parameters of copies and jobs, files, checksums, kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from probes.base import Metric, NoData, Parameter, Plan, ProbeFailed, in_parallel
from probes.grid import CopyOptions, Grid, Location, Transferred

CHECKSUM_TIMEOUT_SECONDS = 600.0
COMPILE_TIMEOUT_SECONDS = 300.0
GENERATE_TIMEOUT_SECONDS = 900.0
_STANDARD = ("-std=gnu99",)  # compilers before 2015 take C for that of 1989
DEFAULT_WALL_SECONDS = 1800.0

COPY_PARAMETERS = {
    "parallel": Parameter(1, "streams that one transfer may use, where its tool can", 1, 64),
    "block_bytes": Parameter(0, "size of one write of a transfer, bytes; 0 is the tool's own", 0, 1e9),
    "server_checksum": Parameter(False, "let the servers compare checksums as a part of every transfer"),
}
WALL_SECONDS = Parameter(
    DEFAULT_WALL_SECONDS,
    "wall-clock limit asked of the batch system, seconds; 0 asks for twice the forecast",
    0.0,
    864_000.0,
)


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


def copy_options(plan: Plan) -> CopyOptions:
    """What ``COPY_PARAMETERS`` say."""
    return CopyOptions(
        streams=plan.integer("parallel"),
        block_bytes=plan.integer("block_bytes"),
        server_checksum=bool(plan.parameters["server_checksum"]),
    )


def check_transfers(grid: Grid, links: Iterable[tuple[str, str]], options: CopyOptions) -> None:
    """Raise NoData for a link, source to target, whose transfer cannot do what the probe is about.

    A program that a transfer needs and an end has not is a failure.
    """
    tools: dict[str, set[str]] = {}
    for source, target in links:
        can = grid.capabilities(source, target)
        if not can.third_party:
            raise NoData(f"copies from {source} to {target} go through the reporter, which would be measured")
        if options.server_checksum and not can.server_checksum:
            raise NoData(f"no checksums by the servers for copies from {source} to {target}")
        tools.setdefault(source, set()).update(can.source_tools)
        tools.setdefault(target, set()).update(can.target_tools)
    in_parallel(
        lambda resource: grid.check_tools(resource, sorted(tools[resource])),
        [resource for resource, needed in tools.items() if needed],
    )


def transfer_metrics(name: str, copy: Transferred) -> list[Metric]:
    """Time, rate, streams and retries of one copy, or of several at once."""
    return [
        Metric(f"{name}.seconds", copy.seconds, "seconds"),
        *rate_metric(f"{name}.bytes_per_second", copy.bytes, copy.seconds),
        Metric(f"{name}.streams", copy.streams, "count"),
        Metric(f"{name}.retries", copy.retries, "count"),
    ]


def rate_metric(name: str, size_bytes: float, seconds: float) -> list[Metric]:
    """A rate; none where the time was too short for the clock that measured it."""
    return [Metric(name, size_bytes / seconds, "bytes_per_second")] if seconds > 0 else []


def wall_seconds(grid: Grid, plan: Plan) -> float:
    """The wall-clock limit to ask for: ``WALL_SECONDS``, or for 0 from the forecast of the compute stage.

    Batch systems count in minutes, and what is asked for too tightly is killed: twice the forecast's upper
    bound and a minute more.
    """
    asked = float(plan.parameters["wall_seconds"])
    if asked > 0:
        return asked
    expected = grid.expected_seconds("stage.compute.seconds")
    return DEFAULT_WALL_SECONDS if expected is None else 60.0 + 2.0 * expected


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
    return sum_of(file.path, parse_sha256sum(answer, file.resource), file.resource)


def parse_sha256sum(text: str, resource: str) -> dict[str, str]:
    """Parse the output of ``sha256sum``: path -> digest. Names that it would escape are not ours."""
    sums = {}
    for line in text.splitlines():
        digest, separator, path = line.partition("  ")
        if not separator or len(digest) != 64:
            raise ProbeFailed(f"unreadable output of sha256sum at {resource}: {line!r}", resource=resource)
        sums[path] = digest
    return sums


def sum_of(path: str, sums: Mapping[str, str], resource: str) -> str:
    """That of *path* among what ``parse_sha256sum`` has read. Raises ProbeFailed where it is missing."""
    if path not in sums:
        raise ProbeFailed(
            f"unreadable output of sha256sum at {resource}: nothing about {path}", resource=resource
        )
    return sums[path]


def deliver(
    grid: Grid, source: Location, target: Location, options: CopyOptions, *, what: str, sent_as: str
) -> Transferred:
    """Copy *what* from *source* to *target*; raise ProbeFailed unless it has the SHA-256 *sent_as* there."""
    copy = grid.copy(source, target, options)
    arrived = sha256(grid, target)
    if arrived != sent_as:
        raise ProbeFailed(
            f"{what} arrived damaged at {target.resource}: SHA-256 {arrived}, "
            f"sent by {source.resource} as {sent_as}",
            resource=target.resource,
        )
    return copy


def read_of_job(grid: Grid, resource: str, name: str, *, what: str) -> str:
    """The small file *name* that a job has left in the scratch directory; *what* it is, for messages."""
    return grid.shell(resource).check(
        ["cat", f"{grid.scratch(resource)}/{name}"], timeout_seconds=60.0, doing=f"read the job's {what}"
    )


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
        write_file(grid, file, kernel_source(header, suffix=".h"))
    write_file(grid, Location(resource, source), kernel_source(kernel))
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


def write_file(grid: Grid, target: Location, text: str) -> None:
    """Write a small text file."""
    grid.shell(target.resource).check(
        ["sh", "-c", 'cat > "$1"', "sh", target.path],
        timeout_seconds=60.0,
        doing=f"write {target.path}",
        input=text,
    )
