"""What probes share, where a site answers nonsense."""

from __future__ import annotations

import pytest

from probes import steps
from probes.base import ProbeFailed


def test_a_checksum_of_another_file_is_the_sites_failure() -> None:
    sums = steps.parse_sha256sum(f"{'0' * 64}  /scratch/other\n", "ncsa")
    assert steps.sum_of("/scratch/other", sums, "ncsa") == "0" * 64
    with pytest.raises(ProbeFailed, match=r"of sha256sum at ncsa: nothing about /scratch/file$") as raised:
        steps.sum_of("/scratch/file", sums, "ncsa")
    assert raised.value.resource == "ncsa"


def test_no_checksum_at_all_is_the_sites_failure_too() -> None:
    with pytest.raises(ProbeFailed, match="nothing about"):
        steps.sum_of("/scratch/file", steps.parse_sha256sum("", "ncsa"), "ncsa")
