from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from forecasting.queues.queue_state import QueuedJob
from forecasting.reading import swf
from forecasting.reading.tables import UnreadableFile

HEADER = "; Installation: a place\n; UnixStartTime: 1027839845\n;\n"
RAN = "   11   342072     32  43306   32  43307    -1   16  43200    -1  1   4   1  -1  2  1 -1 -1"


def log(directory: Path, *lines: str) -> str:
    file = directory / "some.swf"
    file.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")
    return str(file)


def job(*, submit: int = 100, wait: int = 5, run: int = 60, status: int = 1) -> str:
    return f"7 {submit} {wait} {run} 4 -1 -1 -1 -1 -1 {status} -1 -1 -1 -1 -1 -1 -1"


def test_a_job_has_its_request_and_its_outcome(tmp_path: Path) -> None:
    read = swf.read(log(tmp_path, RAN))
    assert read.left_out == 0
    [logged] = read.jobs
    assert logged.job == QueuedJob(0, 342072.0, "2", "4", 16.0, 43200.0)
    assert (logged.wait_seconds, logged.run_seconds, logged.withdrawn) == (32.0, 43306.0, False)
    assert logged.left_queue_seconds == 342104.0


def test_negative_numbers_are_unknown(tmp_path: Path) -> None:
    [logged] = swf.read(log(tmp_path, job(run=-1))).jobs
    assert logged.job == QueuedJob(0, 100.0, swf.UNKNOWN_QUEUE, "", 4.0, None)  # it had 4 processors
    assert logged.run_seconds == 0.0


def test_parts_of_jobs_and_unknown_waits_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = [job(status=status) for status in (2, 3, 4)] + [job(wait=-1), job(submit=-1), job()]
    read = swf.read(log(tmp_path, *lines))
    assert (len(read.jobs), read.left_out) == (1, 5)


def test_a_job_cancelled_before_running_is_withdrawn(tmp_path: Path) -> None:
    lines = [job(status=5, run=0), job(status=5, run=-1), job(status=5, run=9), job(status=0, run=0)]
    withdrawn = [logged.withdrawn for logged in swf.read(log(tmp_path, *lines)).jobs]
    assert withdrawn == [True, True, False, False]


def test_packed_logs_and_comments_in_any_alphabet_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress("; Acknowledge: \xc5ke\n".encode("latin-1") + RAN.encode() + b"\n\n"))
    assert len(swf.read(str(packed)).jobs) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2 3", "fields: expected 18, got '3: 1 2 3'"),
        (RAN + " 1", "fields: expected 18, got '19: "),
        (RAN.replace("342072", "soon"), "submit time: expected a number of at most 3.2e+09, got 'soon'"),
        (RAN.replace("    32  43306", "nan  43306"), "wait time: expected a number"),
        (RAN.replace("43306", "1e99"), "run time: expected a number"),
        (RAN.replace(" 1   4   1", " 9   4   1"), "status: expected -1 to 5, got '9'"),
    ],
)
def test_a_malformed_line_is_refused_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    file = log(tmp_path, RAN, line)
    with pytest.raises(UnreadableFile) as refused:
        swf.read(file)
    assert str(refused.value).startswith(f"{file}, line 6")
    assert message in str(refused.value)


def test_a_file_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="expected jobs with a known wait"):
        swf.read(log(tmp_path))
    with pytest.raises(UnreadableFile, match="cannot open"):
        swf.read(str(tmp_path / "absent.swf"))


def test_a_packed_log_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut.swf.gz"
    cut.write_bytes(gzip.compress("\n".join([RAN] * 999).encode())[:-20])
    with pytest.raises(UnreadableFile, match="cannot read"):
        swf.read(str(cut))
