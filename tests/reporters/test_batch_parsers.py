"""Parsers of batch systems, with captured output and examples from their documentation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reporters.batch import gridengine, htcondor, pbs, slurm
from reporters.jobfiles import JobStamps, parse_stamps, parse_submitted
from reporters.jobrecord import (
    CANCELLED,
    NO_MEMORY,
    OVER,
    RUNNING,
    UNKNOWN_JOB,
    WAITING,
    WALL_LIMIT,
    JobRecord,
    JobRequest,
    queue_seconds,
)

DATA = Path(__file__).parent / "data" / "batch"
NINE = 1740734101.0  # 2025-02-28 09:15:01
SLURM = 1795269719.0  # 2026-11-21 14:01:59


def captured(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "phase", "state", "status", "how"),
    [
        ("slurm-22.05-running", RUNNING, "RUNNING", None, ""),
        ("slurm-22.05-completed", OVER, "COMPLETED", 0, ""),
        ("slurm-22.05-failed", OVER, "FAILED (NonZeroExitCode)", 3, ""),
        ("slurm-22.05-killed", OVER, "FAILED (JobLaunchFailure)", 137, ""),
        ("slurm-22.05-unwritable", OVER, "FAILED (JobLaunchFailure)", 181, "could not be launched"),
        ("slurm-22.05-held", WAITING, "PENDING (JobHeldUser)", None, ""),
        ("slurm-22.05-resources", WAITING, "PENDING (Resources)", None, ""),
        ("slurm-23.11-pending", WAITING, "PENDING (QOSMaxJobsPerUserLimit)", None, ""),
        ("slurm-22.05-cancelled", OVER, "CANCELLED", 143, CANCELLED),
        ("slurm-22.05-cancelled_pending", OVER, "CANCELLED (Resources)", 0, CANCELLED),
        ("slurm-22.05-timeout", OVER, "TIMEOUT (TimeLimit)", 143, WALL_LIMIT),
        ("slurm-22.05-node_fail", OVER, "NODE_FAIL (NodeDown)", 143, "lost its node"),
    ],
)
def test_the_output_of_scontrol_is_parsed(
    name: str, phase: str, state: str, status: int | None, how: str
) -> None:
    record = slurm.parse_status(captured(name), "")
    assert record is not None
    assert (record.phase, str(record), record.status, record.how) == (phase, state, status, how)


def test_slurm_times_are_utc_and_a_future_start_is_ignored() -> None:
    running = slurm.parse_status(captured("slurm-22.05-running"), "")
    assert running is not None
    assert (running.submitted, running.started, running.ended) == (SLURM, SLURM + 1, None)
    waiting = slurm.parse_status(captured("slurm-23.11-pending"), "")
    assert waiting is not None
    assert (waiting.submitted, waiting.started) == (1740830400.0, None)


@pytest.mark.parametrize(
    ("row", "phase", "how"),
    [
        ("CANCELLED by 1000|None|{at}:01|{at}:03|{at}:05|0:0", OVER, CANCELLED),
        ("OUT_OF_MEMORY|None|{at}:01|{at}:03|{at}:05|0:125", OVER, NO_MEMORY),
        ("PREEMPTED|None|{at}:01|{at}:03|{at}:05|0:0", OVER, "was preempted"),
        ("BOOT_FAIL|None|{at}:01|{at}:03|{at}:05|0:0", OVER, "had no node that booted"),
        ("DEADLINE|None|{at}:01|Unknown|{at}:05|0:0", OVER, "reached its deadline"),
        ("TIMEOUT|None|{at}:01|{at}:03|{at}:05|0:0", OVER, WALL_LIMIT),
        ("COMPLETING|None|{at}:01|{at}:03|{at}:05|", RUNNING, ""),
        ("PENDING|Priority|{at}:01|N/A|N/A|", WAITING, ""),
        ("POWER_UP_NODE|None|{at}:01|{at}:03|N/A|", WAITING, ""),
        ("A_STATE_OF_TOMORROW|None|{at}:01|{at}:03|N/A|", RUNNING, ""),
    ],
)
def test_the_output_of_sacct_and_squeue_is_parsed(row: str, phase: str, how: str) -> None:
    text = f"12|{row.format(at='2025-02-28T09:15')}\n"
    record = slurm.parse_status(text, "slurm_load_jobs error: Invalid job id specified\n")
    assert record is not None
    assert (record.phase, record.how, record.submitted) == (phase, how, NINE)


def test_every_line_of_squeue_is_parsed() -> None:
    records = [slurm.parse_status(line, "") for line in captured("slurm-22.05-squeue").splitlines()]
    assert [record.phase for record in records if record] == [OVER] * 7 + [WAITING, RUNNING]


@pytest.mark.parametrize(
    ("complaint", "record"),
    [
        ("slurm_load_jobs error: Invalid job id specified\n", UNKNOWN_JOB),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n", None),
        ("sh: 1: scontrol: not found\n", None),
    ],
)
def test_slurm_tells_an_unknown_job_from_no_answer(complaint: str, record: JobRecord | None) -> None:
    assert slurm.parse_status("", complaint) is record


@pytest.mark.parametrize(
    ("name", "record"),
    [
        (
            "openpbs-20.0-running",
            JobRecord(
                RUNNING,
                "running",
                "Job run at Fri Feb 28 at 09:15 on (node3:ncpus=1)",
                submitted=NINE,
                started=NINE + 7,
            ),
        ),
        (
            "openpbs-20.0-queued",
            JobRecord(
                WAITING,
                "queued",
                "Not Running: Insufficient amount of resource: ncpus (R: 64 A: 0 T: 32)",
                submitted=NINE,
            ),
        ),
        (
            "openpbs-20.0-walltime",
            JobRecord(
                OVER,
                "finished",
                "Job run at Fri Feb 28 at 09:15 on (node3:ncpus=1) and failed",
                submitted=NINE,
                started=NINE + 1,
                ended=NINE + 15,
                how=WALL_LIMIT,
            ),
        ),
        (
            "pbspro-13.1-deleted",
            JobRecord(
                OVER,
                "finished",
                "Job run at Fri Feb 28 at 09:15 on (node3:ncpus=1) and terminated",
                submitted=NINE,
                started=NINE + 1,
                status=143,
                how=CANCELLED,
            ),
        ),
        (
            "torque-6.1-completed",
            JobRecord(OVER, "completed", submitted=NINE, started=NINE + 6, ended=NINE + 11, status=3),
        ),
        (
            "torque-4.2-walltime",
            JobRecord(
                OVER,
                "completed",
                submitted=NINE,
                started=NINE + 6,
                ended=NINE + 11,
                status=143,
                how=WALL_LIMIT,
            ),
        ),
    ],
)
def test_the_output_of_both_dialects_of_qstat_is_parsed(name: str, record: JobRecord) -> None:
    assert pbs.parse_status(captured(name), "") == record


def test_lines_wrapped_by_qstat_are_joined() -> None:
    attributes = pbs.parse_attributes(captured("openpbs-20.0-running"))
    assert attributes["Output_Path"].endswith("/1b4e28ba2fa1/compute/job-0123456789ab/batch")
    assert attributes["Variable_List"].count("PBS_O_") == 9
    assert attributes["Submit_arguments"] == "-N gc-0123456789ab -S /bin/sh -r n"


@pytest.mark.parametrize(
    ("complaint", "record"),
    [
        ("qstat: Unknown Job Id 12.pbs01\n", UNKNOWN_JOB),
        ("qstat: Unknown Job Id Error 12.head.example.org\n", UNKNOWN_JOB),
        ("Connection refused\nqstat: cannot connect to server pbs01 (errno=111)\n", None),
    ],
)
def test_pbs_tells_an_unknown_job_from_no_answer(complaint: str, record: JobRecord | None) -> None:
    assert pbs.parse_status("", complaint) is record


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("htcondor-8.8-idle", JobRecord(WAITING, "idle", "no match found", submitted=NINE)),
        (
            "htcondor-10.0-held",
            JobRecord(
                WAITING,
                "held",
                "Error from slot1@node3: Failed to execute '/scratch/alice/script' with arguments: "
                "(errno=2: 'No such file or directory')",
                submitted=NINE,
            ),
        ),
        (
            "htcondor-10.0-completed",
            JobRecord(OVER, "completed", submitted=NINE, started=NINE + 6, ended=NINE + 11, status=0),
        ),
    ],
)
def test_the_output_of_condor_q_and_condor_history_is_parsed(name: str, record: JobRecord) -> None:
    assert htcondor.parse_status(captured(name), "") == record


def test_a_periodic_remove_by_htcondor_is_the_wall_limit() -> None:
    record = htcondor.parse_status(captured("htcondor-23.0-removed"), "")
    assert record is not None
    assert (record.phase, record.how) == (OVER, WALL_LIMIT)


def test_an_empty_answer_of_htcondor_means_an_unknown_job_only_without_an_error() -> None:
    assert htcondor.parse_status("", "") is UNKNOWN_JOB
    assert htcondor.parse_status("[\n]\n", "") is UNKNOWN_JOB
    assert htcondor.parse_status("", "-- Failed to fetch ads from: <127.0.0.1:9618> : ce1\n") is None
    assert htcondor.parse_status("[\n{ half", "") is None


def test_the_output_of_qstat_of_grid_engine_is_parsed() -> None:
    records = [
        gridengine.parse_status((DATA / f"gridengine-8.1.9-{name}.xml").read_text())
        for name in ("running", "held", "error")
    ]
    assert [str(record) for record in records] == [
        "running",
        "waiting (Job is in hold state)",
        'in error (11/21/2026 13:53:32 [0:19640]: error: can\'t open output file "/no/such/x": '
        "No such file or directory)",
    ]
    assert records[0] is not None
    assert (records[0].submitted, records[0].started) == (1795269209.0, 1795269209.0)


def test_the_output_of_qacct_is_parsed() -> None:
    limit = gridengine.parse_status(captured("gridengine-8.1.9-limit"))
    assert limit is not None
    assert (limit.status, limit.how, (limit.ended or 0) - (limit.started or 0)) == (137, WALL_LIMIT, 2.0)
    unwritable = gridengine.parse_status(captured("univa-8.6-accounting"))
    assert unwritable is not None
    assert (unwritable.how, unwritable.reason) == ("could not be run", "opening input/output file")
    assert (unwritable.submitted, unwritable.started) == (NINE + 0.204, NINE + 2.790)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        (
            "<?xml version='1.0'?>\n<unknown_jobs >\n    <ST_name>999</ST_name>\n</unknown_jobs>\n",
            UNKNOWN_JOB,
        ),
        ("", None),
        ("error: commlib error: got select error (Connection refused)\n", None),
        ('<!DOCTYPE a [<!ENTITY b "cc">]><a>&b;</a>', None),
    ],
)
def test_empty_output_and_xml_with_declarations_are_no_answer_of_grid_engine(
    text: str, record: JobRecord | None
) -> None:
    assert gridengine.parse_status(text) is record


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (slurm.parse_id("4711\n"), "4711"),
        (slurm.parse_id("4711;physics\n"), "4711"),
        (slurm.parse_id("sbatch: slow today\n"), ""),
        (pbs.parse_id("welcome\n1234.pbs01.example.org\n"), "1234.pbs01.example.org"),
        (pbs.parse_id("qsub: waiting\n"), ""),
        (htcondor.parse_id("12.0 - 12.0\n"), "12.0"),
        (htcondor.parse_id("ERROR\n"), ""),
        (gridengine.parse_id("warning: no\n31\n"), "31"),
        (gridengine.parse_id("Unable to run job\n"), ""),
    ],
)
def test_the_number_of_a_job_is_parsed(number: str, expected: str) -> None:
    assert number == expected


REQUEST = JobRequest("gc-0123456789ab", "/s/r", "/s/r/job-1/script", "/s/r/job-1/batch", 2, 90.5)


def test_limits_are_rounded_up_to_the_unit_of_the_batch_system() -> None:
    assert "--time=2" in slurm.submit_command(REQUEST, "", "", [])
    assert "walltime=00:01:31" in pbs.submit_command(REQUEST, "", "", [], select=False)
    assert "h_rt=91" in gridengine.submit_command(REQUEST, "", "", [], "smp")
    assert "EnteredCurrentStatus > 91\n" in htcondor.description(REQUEST, "")


def test_the_submit_command_has_processors_queue_account_and_extra_arguments() -> None:
    assert slurm.submit_command(REQUEST, "short", "physics", ["--mem=1G"])[-6:] == [
        "--cpus-per-task=2",
        "--time=2",
        "--partition=short",
        "--account=physics",
        "--mem=1G",
        REQUEST.script,
    ]
    queue = ["-q", "short", "-A", "physics"]
    torque = pbs.submit_command(REQUEST, "short", "physics", ["-V"], select=False)
    assert torque[-6:] == [*queue, "-V", REQUEST.script]
    assert "nodes=1:ppn=2" in torque
    assert "select=1:ncpus=2" in pbs.submit_command(REQUEST, "", "", [], select=True)
    sge = gridengine.submit_command(REQUEST, "short", "physics", ["-V"], "mpi")
    assert sge[-9:] == ["-pe", "mpi", "2", *queue, "-V", REQUEST.script]
    assert "-pe" not in gridengine.submit_command(replace(REQUEST, cpus=1), "", "", [], "mpi")
    assert "accounting_group = physics\nqueue\n" in htcondor.description(REQUEST, "physics")


def test_arguments_for_htcondor_are_quoted() -> None:
    assert htcondor.quoted(["/a b/it's", 'say "x"']) == "\"'/a b/it''s' 'say \"\"x\"\"'\""


@pytest.mark.parametrize(
    ("text", "breath"),
    [
        ("started 1795267789.630\nended 1795267790.5 3\n", JobStamps(1795267789.63, 1795267790.5, 3)),
        ("started 1795267789.%N\nended 1795267790.%N 0\n", JobStamps(1795267789.0, 1795267790.0, 0)),
        ("started 1795267789.1\n", JobStamps(1795267789.1)),
        ("", JobStamps()),
    ],
)
def test_the_stamps_of_a_job_are_parsed(text: str, breath: JobStamps) -> None:
    assert parse_stamps(text) == breath


def test_the_time_of_submission_is_parsed_before_the_output_of_the_command() -> None:
    assert parse_submitted("submitted 1795267789.25\n4711\n") == (1795267789.25, "4711\n")
    assert parse_submitted("mkdir: cannot create\n") == (None, "mkdir: cannot create\n")


@pytest.mark.parametrize(
    ("own_start", "recorded", "expected"),
    [
        (100.7, (100.0, 101.0), 0.7),  # the record knows whole seconds, the job the rest
        (109.0, (100.0, 102.0), 2.0),  # its first breath came late: a prologue, another clock
        (90.0, (100.0, 102.0), 2.0),
        (100.7, None, 0.7),
        (None, (100.0, 102.0), 2.0),
    ],
)
def test_the_queue_wait_is_the_record_refined_by_the_stamps_of_the_job(
    own_start: float | None, recorded: tuple[float, float] | None, expected: float
) -> None:
    record = recorded and JobRecord(RUNNING, "R", submitted=recorded[0], started=recorded[1])
    assert queue_seconds(100.0, JobStamps(own_start), record) == pytest.approx(expected)
