"""The output of ``df -Pk`` on several systems."""

from __future__ import annotations

import pytest

from probes.base import ProbeFailed
from reporters.scratch import parse_free_bytes

HEADER = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"


@pytest.mark.parametrize(
    ("row", "free_bytes"),
    [
        ("/dev/vda         263174212 14583736  82796372      15% /\n", 82796372 * 1024),
        ("tmpfs                65536        0     65536       0% /dev/shm\n", 65536 * 1024),
        ("nas:/vol/home  1000000  999999 0 100% /home/with a space\n", 0),
        ("//nas/the share 100 60 40 60% /mnt\n", 40 * 1024),
        ("overlay 100 110 -10 110% /\n", -10 * 1024),
    ],
)
def test_the_free_space_is_read(row: str, free_bytes: int) -> None:
    assert parse_free_bytes(HEADER + row, "ncsa") == free_bytes


@pytest.mark.parametrize("text", ["", "\n", HEADER, "df: no file systems processed\n", "a b c% d\n"])
def test_anything_else_is_refused_with_the_resource(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of df at ncsa"):
        parse_free_bytes(text, "ncsa")
