"""How full a file system is, from the output of df."""

from __future__ import annotations

import pytest

from probes.common.fullness import parse_df

HEAD = "Filesystem     1024-blocks    Used Available Capacity Mounted on\n"


@pytest.mark.parametrize(
    ("text", "used"),
    [
        (HEAD + "/dev/sda1 1000 250 750 25% /scratch\n", 0.25),
        (HEAD + "/dev/sda1 1000 900 0 100% /scratch\n", 1.0),
        (HEAD + "scratch 0 0 0 - /scratch\n", None),
        (HEAD + "scratch - - - - /scratch\n", None),
        (HEAD, None),
        ("", None),
    ],
)
def test_the_used_share_is_that_of_what_programs_can_use(text: str, used: float | None) -> None:
    assert parse_df(text) == used
