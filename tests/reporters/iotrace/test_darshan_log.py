"""Darshan logs, with those of the package ``darshan``."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from probes.common.signature import parse
from reporters.iotrace import darshan_log
from reporters.iotrace.build import build
from reporters.iotrace.calls import BadTrace

ROOT = Path(__file__).resolve().parents[3]
_SPEC = importlib.util.find_spec("darshan")
LOGS = Path(_SPEC.origin).parent if _SPEC and _SPEC.origin else Path("/nonexistent")
needs_darshan = pytest.mark.skipif(_SPEC is None, reason="no Python package darshan (extra: darshan)")


@needs_darshan
def test_the_segments_of_dxt_are_calls() -> None:
    trace = darshan_log.read(LOGS / "examples/example_logs/dxt.darshan")
    assert trace.source == "darshan-dxt"
    assert trace.warnings == ["DXT has reads and writes: opens and fsyncs are not played"]
    text = build(trace, None)
    document = json.loads(text)
    assert document["source"] == "darshan-dxt"
    assert {name: document["calls"][name] for name in ("read", "write")} == {"read": 6126, "write": 1497}
    assert document["tasks"] == 1
    assert parse(text).bytes_read == document["bytes"]["read"] > 20_000_000


@needs_darshan
def test_a_log_without_segments_is_labelled_as_counters() -> None:
    calls = darshan_log._counted_calls([counters(rank=-1)], ranks=4)
    assert sorted(calls) == [0, 1, 2, 3]
    assert [sum(call.operation == "read" for call in calls[rank]) for rank in range(4)] == [3, 3, 2, 2]
    assert {call.size for call in calls[0] if call.operation == "read"} == {100}
    assert sum(call.duration for mine in calls.values() for call in mine) == pytest.approx(
        2_000_000_000, rel=0.01
    )


DAMAGED_SEGMENTS = [
    ({"start_time": 1e300}, "a write of -1e.300 s at 1e.300 s"),
    ({"start_time": float("nan")}, "a write of nan s at nan s"),
    ({"end_time": float("inf")}, "a write of inf s at 1 s"),
    ({"offset": -1}, "a write of 10 bytes at -1"),
    ({"length": 1 << 63}, "a write of 9,223,372,036,854,775,808 bytes at 0"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGED_SEGMENTS)
def test_a_segment_that_cannot_be_is_named(damage: Mapping[str, float], message: str) -> None:
    segment = {"start_time": 1.0, "end_time": 2.0, "offset": 0, "length": 10, **damage}
    record = {"id": 7, "rank": 0, "read_segments": [], "write_segments": [segment]}
    with pytest.raises(BadTrace, match=f"^it is damaged: {message}$"):
        darshan_log._dxt_calls([record], 1)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"rank": 4}, "it is damaged: a record of rank 4 in a log of 4 ranks"),
        ({"rank": -2}, "it is damaged: a record of rank -2 in a log of 4 ranks"),
        ({"READS": -1}, "-1 calls, the limit is 2,000,000"),
        ({"READS": 1 << 60}, "1,152,921,504,606,846,976 calls, the limit is 2,000,000"),
        ({"BYTES_READ": -10}, "it is damaged: a read of -1 bytes at 0"),
        ({"F_READ_TIME": float("inf")}, "it is damaged: a read of inf s at nan s"),
    ],
)
def test_counters_that_cannot_be_are_named(damage: Mapping[str, float], message: str) -> None:
    with pytest.raises(BadTrace, match=f"^{message}$"):
        darshan_log._counted_calls([{**counters(rank=-1), **damage}], ranks=4)


@needs_darshan
def test_the_line_of_a_damaged_log_says_what_is_damaged(tmp_path: Path) -> None:
    data = bytearray((LOGS / "examples/example_logs/dxt.darshan").read_bytes())
    data[33513] = 191  # in the compressed segments
    (tmp_path / "job.darshan").write_bytes(data)
    with pytest.raises(BadTrace, match=r"job.darshan: it is damaged: a read of [\d,]+ bytes at -"):
        darshan_log.read(tmp_path / "job.darshan")


def counters(rank: int) -> Mapping[str, float]:
    return {
        "rank": rank, "id": 7, "READS": 10, "BYTES_READ": 1000, "F_READ_START_TIMESTAMP": 1.0,
        "F_READ_END_TIMESTAMP": 3.0, "F_READ_TIME": 2.0, "SEQ_READS": 10, "WRITES": 0, "BYTES_WRITTEN": 0,
    }  # fmt: skip


@needs_darshan
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda log: b"", "0 bytes, expected 1 to"),
        (lambda log: b"x" * 5000, "darshan cannot read it: unable to parse log file format version"),
        (lambda log: log[:3000], "darshan cannot read it: unable to read compressed data"),
        (lambda log: b"9.99" + log[4:], r"darshan cannot read it: .*, expected version \S+, but got 9.99$"),
    ],
)
def test_a_damaged_log_is_refused_and_left_alone(tmp_path: Path, data: object, message: str) -> None:
    assert callable(data)
    log = tmp_path / "job.darshan"
    log.write_bytes(data((LOGS / "examples/example_logs/dxt.darshan").read_bytes()))
    with pytest.raises(BadTrace, match=f"job.darshan: {message}") as refused:
        darshan_log.read(log)
    assert "\n" not in str(refused.value)
    assert log.exists()  # the C library removes logs that it cannot read


@needs_darshan
def test_a_log_of_too_many_ranks_is_refused() -> None:
    with pytest.raises(BadTrace, match="2,048 ranks, a signature has at most 1,024 tasks"):
        darshan_log.read(LOGS / "tests/input/sample.darshan")


def test_a_log_of_a_gigabyte_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "job.darshan"
    with log.open("wb") as file:
        file.truncate(1 << 30)  # sparse
    with pytest.raises(BadTrace, match="1,073,741,824 bytes, expected 1 to"):
        darshan_log.read(log)


def test_without_the_package_a_line_names_it(tmp_path: Path) -> None:
    (tmp_path / "job.darshan").write_bytes(b"x")
    python = Path(sys.base_prefix, "bin", "python3")  # without the packages of the environment
    command = [str(python), "-m", "reporters", "iotrace", "signature", "job.darshan"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "the Python package darshan is not installed (extra: darshan)" in done.stderr
    assert done.returncode
