from __future__ import annotations

import os
from pathlib import Path

from reporters.remote.policy.scratch_use import scratch_used_bytes
from tests.reporters.remote.policy.assignments import assignment, resource, ssh

FILE_BYTES = 1_000_000


def test_only_what_runs_have_in_scratch_on_this_host_counts(tmp_path: Path) -> None:
    own = tmp_path / f"gridcast-{os.geteuid()}" / "series"
    own.mkdir(parents=True)
    (tmp_path / "other").write_bytes(b"x" * FILE_BYTES)
    (own / "link").symlink_to(tmp_path / "other")
    (own / "loop").symlink_to(own)
    local = assignment(resource(scratch=str(tmp_path)))
    assert scratch_used_bytes(local) < FILE_BYTES
    (own / "file").write_bytes(b"x" * FILE_BYTES)
    assert FILE_BYTES <= scratch_used_bytes(local) < 2 * FILE_BYTES
    twice = assignment(resource(scratch=str(tmp_path)), resource("other", scratch=str(tmp_path)))
    assert scratch_used_bytes(twice) == scratch_used_bytes(local), "a shared directory counts once"
    assert scratch_used_bytes(assignment(ssh(scratch=str(tmp_path)))) == 0, "another host's"
    assert scratch_used_bytes(assignment(resource(scratch=str(tmp_path / "none")))) == 0


def test_a_sparse_file_counts_what_it_takes(tmp_path: Path) -> None:
    own = tmp_path / f"gridcast-{os.geteuid()}"
    own.mkdir()
    (own / "sparse").touch()
    os.truncate(own / "sparse", 10**12)
    assert scratch_used_bytes(assignment(resource(scratch=str(tmp_path)))) < FILE_BYTES
