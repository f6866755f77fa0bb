"""Results of storage benchmarks: fio, IOR, elbencho, mdtest and IO500, in the formats that they write."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from monitor.runs.imports import formats
from monitor.runs.imports.formats.base import InvalidOption, Unreadable
from tests.monitor.runs.imports.formats.reading import DATA, metrics, read, refused, runs, skipped

FIO = (DATA / "fio.json").read_text()
IOR = (DATA / "ior.json").read_text()
MDTEST = formats.load("mdtest").example.data.decode()
IO500 = formats.load("io500").example.data.decode()
ELBENCHO = json.loads(formats.load("elbencho").example.data)


def test_each_direction_of_a_job_of_fio_is_a_run_that_ends_when_fio_printed_it() -> None:
    mixed_read, mixed_write, write = runs(read("fio", FIO))
    assert [run.series for run in (mixed_read, mixed_write, write)] == [
        "gridcast-read",
        "gridcast-write",
        "b-write",
    ]
    printed = datetime(2026, 11, 26, 15, 24, 3, 765_000, tzinfo=UTC)
    assert mixed_read.slot == printed - timedelta(milliseconds=37)
    assert write.slot == printed - timedelta(milliseconds=11) + timedelta(microseconds=1)  # the second job
    assert metrics(write)["write.bytes_per_second"] == (190_650_181.0, "bytes_per_second")
    assert metrics(mixed_read)["read.latency.seconds"][0] == pytest.approx(274_631.454545e-9)
    assert write.parameters["pattern"] == "write"


def test_jobs_of_one_name_that_run_at_once_have_different_slots() -> None:
    document = json.loads(FIO[FIO.index("\n") :])
    document["jobs"] = [document["jobs"][1]] * 3
    slots = [run.slot for run in runs(read("fio", json.dumps(document)))]
    assert len(set(slots)) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"error": 0', '"error": 28', "the job ended with error 28"),
        ('"total_ios": 32', '"total_ios": 0', "the job moved no data"),
    ],
)
def test_jobs_of_fio_without_a_result_are_skipped(old: str, new: str, message: str) -> None:
    assert message in skipped(read("fio", FIO.replace(old, new)))


def test_a_document_of_fio_without_a_time_is_refused() -> None:
    items = read("fio", FIO.replace('"timestamp', '"was'))
    assert refused(items) == [
        f"job {number}: timestamp: expected a time in seconds since 1970, before the jobs, got 'None'"
        for number in (1, 2)
    ]


def test_output_of_fio_for_people_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="expected the output of fio --output-format=json"):
        read("fio", "b: (groupid=0, jobs=1): err= 0\n  write: IOPS=2909\n")


def test_repetitions_of_ior_follow_each_other_and_unmeasured_numbers_are_left_out() -> None:
    first_write, first_read, second_write, second_read = runs(read("ior", IOR))
    assert (first_write.series, first_read.series) == ("posix-fpp-write", "posix-fpp-read")
    begin = datetime(2026, 11, 5, 15, tzinfo=UTC)
    assert (first_write.slot, second_write.slot) == (begin, begin + timedelta(microseconds=1))
    assert metrics(second_write)["write.bytes_per_second"] == (50 * 2**20, "bytes_per_second")
    assert "read.operations_per_second" not in metrics(first_read)  # "-nan" in the file
    assert metrics(second_read)["read.operations_per_second"] == (320.0, "operations_per_second")
    assert first_write.parameters["tasks"] == 2


def test_times_of_ior_are_in_the_zone_of_the_option() -> None:
    run = runs(read("ior", IOR, timezone="America/Denver", resource="scratch1"))[0]
    assert run.slot == datetime(2026, 11, 5, 22, tzinfo=UTC)
    assert run.resource == "scratch1"
    with pytest.raises(InvalidOption, match="--timezone: expected a time zone"):
        read("ior", IOR, timezone="Mars/Olympus")


def test_a_result_of_ior_without_an_access_is_refused_and_the_others_are_read() -> None:
    items = read("ior", IOR.replace('"access": "read"', '"access": "remove"', 1))
    assert len(runs(items)) == 3
    assert refused(items)[0].startswith("test 1, repetition 1: access: expected a result with the access")


def test_the_text_table_of_ior_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="expected"):
        read("ior", "IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O\nUsed Inodes: -nan%\n")


def test_the_results_of_elbencho_are_those_of_the_slowest_thread() -> None:
    (run,) = runs(read("elbencho", json.dumps(ELBENCHO)))
    assert metrics(run) == {
        "write.bytes_per_second": (265_289_728.0, "bytes_per_second"),
        "write.operations_per_second": (253.0, "operations_per_second"),
        "write.first_done.bytes_per_second": (267_386_880.0, "bytes_per_second"),
        "write.first_done.operations_per_second": (255.0, "operations_per_second"),
        "write.latency.seconds": (0.0157, "seconds"),
    }
    assert run.slot == datetime(2026, 11, 26, 14, 0, 0, 250_000, tzinfo=UTC)


def test_a_damaged_line_of_elbencho_is_refused_and_the_others_are_read() -> None:
    labelled = json.dumps({**ELBENCHO, "label": "night"})
    items = read(
        "elbencho", f'{labelled}\n{{"phase_type": "WRI\n{json.dumps({**ELBENCHO, "last_done": {}})}\n'
    )
    assert [run.series for run in runs(items)] == ["night-write"]
    assert [message.partition(": expected")[0] for message in refused(items)] == [
        "line 2: line",
        "line 3: elapsed_time_ms",
    ]


def test_the_mean_rates_of_mdtest_are_imported() -> None:
    (run,) = runs(read("mdtest", MDTEST))
    assert (run.series, run.seconds) == ("tasks-2", 1.0)
    assert metrics(run)["directory_creation.operations_per_second"] == (13602.511, "operations_per_second")
    assert run.parameters == {"tasks": 2, "nodes": 1, "items": 200, "iterations": 3}


def test_times_per_operation_and_older_tables_of_mdtest_are_told_apart() -> None:
    times = "SUMMARY time (in ms/op): (of 3 iterations)\n   File stat   9.0 9.0 9.0 9.0\n"
    older = MDTEST.replace("File stat  ", "File stat :").replace("-- finished", times + "-- finished")
    (run,) = runs(read("mdtest", older))
    assert metrics(run)["file_stat.operations_per_second"][0] == 396_004.310


def test_mdtest_that_was_killed_is_reported_and_the_next_call_is_read() -> None:
    killed = MDTEST[: MDTEST.index("   Tree removal")]
    items = read("mdtest", killed + MDTEST)
    assert refused(items) == ["line 1: output: expected a line with its end, got 'another start'"]
    assert len(runs(items)) == 1
    assert refused(read("mdtest", killed)) == [
        "line 1: output: expected a line with its end, got 'the end of the file'"
    ]


def test_phases_of_io500_and_its_score_are_series() -> None:
    bandwidth, metadata, score = runs(read("io500", IO500))
    assert metrics(bandwidth)["bytes_per_second"][0] == pytest.approx(0.588461 * 2**30)
    assert metrics(metadata)["operations_per_second"][0] == pytest.approx(20_118.204)
    assert (score.series, score.slot) == ("score", bandwidth.slot)
    assert metrics(score)["score"] == (3.440715, "count")
    assert "valid" not in bandwidth.parameters


def test_an_invalid_phase_of_io500_is_marked_and_one_that_was_not_run_skipped() -> None:
    text = IO500.replace("score           = 0.588461", "; ERROR INVALID Runtime is smaller\nscore = 0.588461")
    text = text.replace("score           = 20.118204\n", "").replace("3.440715", "3.440715 [INVALID]")
    items = read("io500", text)
    phase, score = runs(items)
    assert (phase.parameters["valid"], score.parameters["valid"]) == (False, False)
    assert skipped(items) == ["the phase was not run, or has no score"]


def test_a_file_of_io500_without_times_says_which_are_missing() -> None:
    items = read("io500", "\n".join(line for line in IO500.splitlines() if not line.startswith("t_")))
    assert [message.partition(": expected")[0] for message in refused(items)] == [
        "section ior-easy-write, line 6: t_start",
        "section mdtest-easy-write, line 11: t_start",
        "section SCORE, line 16: t_start",
    ]
