"""The common part of transfers by a program."""

from __future__ import annotations

import pytest

from probes.grid import CopyOptions
from reporters import resolve
from reporters.base import CannotCopy
from tests.reporters.places import two_places


@pytest.mark.parametrize("output", ["Welcome to IU", "", "-1", "1.5"])
def test_an_unreadable_size_fails_the_copy_and_leaves_no_file(output: str) -> None:
    with two_places("local") as (one, two):
        one.install("wc", f"echo '{output}'")
        (one.scratch / "file").write_bytes(b"12345")
        transfer = resolve.transfer_between(one.end, two.end)
        paths = str(one.scratch / "file"), str(two.scratch / "file")
        with pytest.raises(CannotCopy, match="unreadable output of wc at one: ") as raised:
            transfer.copy(*paths, options=CopyOptions(), timeout_seconds=60)
        assert raised.value.resource == "one"
        assert list(two.scratch.iterdir()) == []
