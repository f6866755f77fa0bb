"""SHA-256 sums of files at a site whose sha256sum prints something unexpected."""

from __future__ import annotations

import pytest

from probes.base import ProbeFailed
from probes.common import files


def test_a_checksum_of_another_file_is_the_sites_failure() -> None:
    sums = files.parse_sha256sum(f"{'0' * 64}  /scratch/other\n", "ncsa")
    assert files.digest_of("/scratch/other", sums, "ncsa") == "0" * 64
    with pytest.raises(ProbeFailed, match=r"of sha256sum at ncsa: no line for /scratch/file$") as raised:
        files.digest_of("/scratch/file", sums, "ncsa")
    assert raised.value.resource == "ncsa"


def test_no_checksum_at_all_is_the_sites_failure_too() -> None:
    with pytest.raises(ProbeFailed, match="no line for"):
        files.digest_of("/scratch/file", files.parse_sha256sum("", "ncsa"), "ncsa")
