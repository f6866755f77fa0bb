"""Trace files that are damaged, newer or too large are refused in one line."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.common.io_counters import COUNTERS_BYTES
from reporters.iotrace.calls import BadTrace, IoCall
from reporters.iotrace.records import MAX_BYTES, TraceFile, merge, write_part
from tests.reporters.iotrace.conftest import ROOT, Traced, calls_of, needs_compiler, trace_of

pytestmark = needs_compiler

HEADER_SIZE_AT = 12


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: b"", "it is empty"),
        (lambda data: b"\x7fELF" + data, "it is no trace of iotrace"),
        (
            lambda data: data.replace(b'"version":1', b'"version":2', 1),
            "it has version 2, this gridcast reads 1: update it$",
        ),
        (lambda data: data.replace(b'"version":1,', b"", 1), "it has version None"),
        (lambda data: data.replace(b'"source":"trace"', b'"source":"gossip"', 1), "it is damaged: its"),
        (lambda data: data.replace(b'"memory_bytes"', b'"memory_words"', 1), "it is damaged: it"),
        (lambda data: data[:-64], "it is damaged"),
        (
            lambda data: data.replace(b"GRIDIOT", b"GRIDXXX"),
            "it is damaged: the header of a process is damaged",
        ),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_name(
    traced: Traced, tmp_path: Path, spoil: Callable[[bytes], bytes], message: str
) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    traced("cat", str(tmp_path / "a"), options=("--area", str(tmp_path)))
    (tmp_path / "trace").write_bytes(spoil((tmp_path / "trace").read_bytes()))
    with pytest.raises(BadTrace, match=f"trace: {message}"):
        trace_of(tmp_path)


def test_a_trace_of_a_gigabyte_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "trace").open("wb") as file:
        file.write(
            json.dumps({"format": "gridcast-io-trace", "version": 1, "processes": []}).encode() + b"\n"
        )
        file.truncate(1 << 30)  # sparse
    with pytest.raises(
        BadTrace, match=f"1,073,741,824 bytes, the limit is {MAX_BYTES:,}: trace a shorter run"
    ):
        trace_of(tmp_path)


def test_a_record_with_an_unknown_operation_is_refused(traced: Traced, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text", encoding="ascii")
    traced("cat", str(tmp_path / "a"), options=("--area", str(tmp_path)))
    data = bytearray((tmp_path / "trace").read_bytes())
    first_record = data.index(b"\n") + 1 + COUNTERS_BYTES + 64
    data[first_record + 60 : first_record + 64] = struct.pack("<I", 99)
    (tmp_path / "trace").write_bytes(data)
    command = [sys.executable, "-m", "reporters", "iotrace", "signature", str(tmp_path / "trace")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{tmp_path}/trace: it is damaged: it has the operation 99\n")
    assert done.stderr.count("\n") == 1


def test_a_damaged_chunk_is_refused(tmp_path: Path) -> None:
    write_part(tmp_path / "part", 1, [IoCall(5, 2, 7, 0, 10, 10, 1, 0, "read")])
    merge([tmp_path / "part"], tmp_path / "whole", {"memory_bytes": 1, "source": "trace"})
    header = (tmp_path / "whole").read_bytes().index(b"\n") + 1
    end = COUNTERS_BYTES + 64 + 64
    for place, value in ((COUNTERS_BYTES, 1 << 30), (COUNTERS_BYTES, 0), (HEADER_SIZE_AT, end - 8)):
        data = bytearray((tmp_path / "whole").read_bytes())
        struct.pack_into("<I", data, header + place, value)
        (tmp_path / "trace").write_bytes(data)
        with pytest.raises(BadTrace, match="damaged at byte"):
            calls_of(tmp_path)


@pytest.mark.parametrize("name", ["trace", "job.darshan"])
@pytest.mark.parametrize("action", ["show", "signature"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, action: str, name: str) -> None:
    for make in (os.mkfifo, os.mkdir):
        path = tmp_path / make.__name__ / name
        path.parent.mkdir()
        make(path)
        command = [sys.executable, "-m", "reporters", "iotrace", action, str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"gridcast-reporter iotrace: cannot read {path}: it is no regular file\n"


def test_a_device_is_refused_at_once() -> None:
    with pytest.raises(BadTrace, match="cannot read /dev/zero: it is no regular file"):
        TraceFile(Path("/dev/zero"))


def test_processes_that_were_killed_before_their_first_call_count_for_nothing(tmp_path: Path) -> None:
    parts = [tmp_path / name for name in ("empty", "zeros", "process")]
    parts[0].touch()
    parts[1].write_bytes(bytes(4096))
    write_part(parts[2], 1, [IoCall(5, 2, 7, 0, 10, 10, 1, 0, "read")])
    merge(parts, tmp_path / "trace", {"memory_bytes": 1, "source": "trace"})
    trace = TraceFile(tmp_path / "trace")
    assert trace.summary == "1 calls of 1 processes"
    assert [call.size for stream in trace.trace().streams for call in stream.calls] == [10]
