"""Jobs without a batch system, started by a launcher."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reporters.base import JobFailed, SubmittedJob
from reporters.batch.fork import Batch, Events, parse_events
from tests.reporters.places import Place, two_places

numbers = itertools.count()


@pytest.fixture(scope="module", params=["local", "ssh"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with two_places(request.param) as (one, _):
        yield one


@pytest.fixture
def directory(place: Place) -> Path:
    directory = place.scratch / f"run-{next(numbers)}"
    directory.mkdir()
    return directory


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("", Events()),
        ("submitted 1.5\nstarted 2", Events(1.5)),
        ("Welcome!\n\nsubmitted 1.5\nstarted 2.25\nended 3 137\n", Events(1.5, 2.25, 3.0, 137)),
        ("submitted\nstarted soon\nended 3\nended\n\n", Events()),
        ("submitted 1\nsubmitted 2\n", Events(1.0)),
    ],
)
def test_events_are_parsed_between_other_output_of_a_login(text: str, events: Events) -> None:
    assert parse_events(text) == events


def submit(place: Place, directory: Path, *argv: str, launcher: list[str]) -> SubmittedJob:
    system = Batch(place.shell, launcher=launcher)
    return system.submit(argv, directory=str(directory), cpus=1, wall_seconds=30)


def test_a_job_is_queued_until_its_launcher_starts_it(place: Place, directory: Path) -> None:
    go = directory / "go"
    hold = ["sh", "-c", f'until [ -e "{go}" ]; do sleep 0.01; done; exec "$@"', "sh"]
    end = directory / "end"
    job = submit(place, directory, "sh", "-c", f'until [ -e "{end}" ]; do sleep 0.01; done', launcher=hold)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.wait_started, timeout_seconds=60)
        time.sleep(0.3)  # the job's time in the queue
        assert not waiting.done()
        go.touch()
        assert waiting.result() >= 0.25  # returns before the job's end
    time.sleep(0.3)  # the job's run time
    end.touch()
    assert job.wait_ended(timeout_seconds=60) >= 0.25


def test_a_launcher_starts_the_job(place: Place, directory: Path) -> None:
    job = submit(place, directory, "sh", "-c", "nice > level", launcher=["nice", "-n", "7"])
    job.wait_ended(timeout_seconds=60)
    assert int((directory / "level").read_text()) >= 7


def test_the_message_of_a_refusing_launcher_is_quoted_and_the_job_does_not_run(
    place: Place, directory: Path
) -> None:
    refuse = ["sh", "-c", "echo 'qsub: error: partition is closed' >&2; exit 9", "sh"]
    job = submit(place, directory, "touch", "ran", launcher=refuse)
    with pytest.raises(JobFailed, match="the job at one was refused: qsub: error: partition is closed"):
        job.wait_started(timeout_seconds=60)
    with pytest.raises(JobFailed, match="was refused"):
        job.wait_ended(timeout_seconds=60)
    assert not (directory / "ran").exists()


def test_a_job_that_ignores_sigterm_ends_soon_after_its_limit(place: Place, directory: Path) -> None:
    argv = ["sh", "-c", "trap '' TERM; sleep 600 & wait; sleep 600"]
    job = Batch(place.shell).submit(argv, directory=str(directory), cpus=1, wall_seconds=0.2)
    with pytest.raises(JobFailed, match=r"the job at one exceeded its wall limit of 0.2 s"):
        job.wait_ended(timeout_seconds=60)


def test_a_job_cancelled_in_the_queue_never_starts(place: Place, directory: Path) -> None:
    hold = ["sh", "-c", 'sleep 0.5; exec "$@"', "sh"]
    job = submit(place, directory, "touch", "ran", launcher=hold)
    job.cancel()
    with pytest.raises(JobFailed):
        job.wait_started(timeout_seconds=60)
    assert not (directory / "ran").exists()
