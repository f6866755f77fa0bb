"""Files at a resource: write a text, make random data, compute SHA-256 sums."""

from __future__ import annotations

from collections.abc import Mapping

from probes.base import ProbeFailed
from probes.grid import Grid, Location

CHECKSUM_TIMEOUT_SECONDS = 600.0
GENERATE_TIMEOUT_SECONDS = 900.0


def write_file(grid: Grid, target: Location, text: str) -> None:
    """Write *text* to the file *target*."""
    grid.shell(target.resource).check(
        ["sh", "-c", 'cat > "$1"', "sh", target.path],
        timeout_seconds=60.0,
        doing=f"write {target.path}",
        input=text,
    )


def make_random_file(grid: Grid, target: Location, size_bytes: int) -> None:
    """Create a file of *size_bytes* random bytes."""
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
    """Return the SHA-256 of *file*, computed at the file's resource, as 64 hexadecimal digits."""
    output = grid.shell(file.resource).check(
        ["sha256sum", file.path], timeout_seconds=CHECKSUM_TIMEOUT_SECONDS, doing=f"checksum {file.path}"
    )
    return digest_of(file.path, parse_sha256sum(output, file.resource), file.resource)


def parse_sha256sum(text: str, resource: str) -> dict[str, str]:
    """Return the digests in the output of ``sha256sum``, by path. Escaped paths are not supported."""
    sums = {}
    for line in text.splitlines():
        digest, separator, path = line.partition("  ")
        if not separator or len(digest) != 64:
            raise ProbeFailed(f"unreadable output of sha256sum at {resource}: {line!r}", resource=resource)
        sums[path] = digest
    return sums


def digest_of(path: str, sums: Mapping[str, str], resource: str) -> str:
    """Return the digest of *path* from the result of ``parse_sha256sum``. Raises ProbeFailed without one."""
    if path not in sums:
        raise ProbeFailed(
            f"unreadable output of sha256sum at {resource}: no line for {path}", resource=resource
        )
    return sums[path]
