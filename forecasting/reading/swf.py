"""Standard Workload Format: the log of a batch system, a job a line, 18 fields (Feitelson, Tsafrir, Krakov:
"Experience with using the Parallel Workloads Archive", JPDC 74, 2014).

What is below zero is not known. Lines of status 2 to 4 are parts of jobs that have lines of their own. A job
that was cancelled (status 5) and did not run left the queue when its wait ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from forecasting.queues.queue_state import Job
from forecasting.reading.tables import Unreadable, lines

FIELDS = 18
_SUBMIT, _WAIT, _RUN, _PROCESSORS, _REQUESTED_PROCESSORS, _REQUESTED_SECONDS = 1, 2, 3, 4, 7, 8
_STATUS, _USER, _QUEUE = 10, 11, 14
_NAMES = {
    _SUBMIT: "submit time",
    _WAIT: "wait time",
    _RUN: "run time",
    _PROCESSORS: "processors",
    _REQUESTED_PROCESSORS: "requested processors",
    _REQUESTED_SECONDS: "requested time",
    _STATUS: "status",
}
_LARGEST = 1e15  # of any number; as seconds, thirty million years
_PARTS = range(2, 5)
_CANCELLED = 5
UNKNOWN = "unknown"


@dataclass(slots=True, frozen=True)
class Logged:
    """A job with what became of it: after *wait_seconds* it started, or it was *withdrawn*."""

    job: Job
    wait_seconds: float
    run_seconds: float
    withdrawn: bool

    @property
    def left_queue_seconds(self) -> float:
        return self.job.submitted_seconds + self.wait_seconds


@dataclass(slots=True)
class Log:
    """The jobs of a file in its order, numbered from 0, and how many lines were left out: parts of jobs, and
    jobs whose wait is not known."""

    jobs: list[Logged]
    left_out: int


def read(file: str) -> Log:
    """What is in *file*, which may be packed by gzip; ``-`` is standard input.

    Raises:
        Unreadable: naming file and line: a job has not 18 fields, or one that is no number; or there is no
            job.
    """
    log = Log([], 0)
    for number, line in enumerate(lines(file, encoding="latin-1"), start=1):  # names of people in comments
        words = line.split()
        if words and not words[0].startswith(";"):
            logged = _job(f"{file}, line {number}", words, len(log.jobs))
            if logged is None:
                log.left_out += 1
            else:
                log.jobs.append(logged)
    if not log.jobs:
        raise Unreadable(f"{file}: there is no job with a known wait in it; is it in SWF?")
    return log


def _job(place: str, words: list[str], number: int) -> Logged | None:
    """What a line says; None if it is to be left out."""
    if len(words) != FIELDS:
        raise Unreadable(f"{place}: expected the {FIELDS} fields of SWF, got {len(words)}: {_shown(words)}")
    said = {index: _number(place, index, words[index]) for index in _NAMES}
    if said[_STATUS] in _PARTS or said[_WAIT] < 0.0 or said[_SUBMIT] < 0.0:
        return None
    run = max(0.0, said[_RUN])
    job = Job(
        number,
        said[_SUBMIT],
        _name(words[_QUEUE]) or UNKNOWN,
        _name(words[_USER]),
        _known(said[_REQUESTED_PROCESSORS]) or _known(said[_PROCESSORS]),
        _known(said[_REQUESTED_SECONDS]),
    )
    return Logged(job, said[_WAIT], run, withdrawn=said[_STATUS] == _CANCELLED and not run)


def _number(place: str, index: int, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not abs(number) <= _LARGEST:
        expected = f"expected a number of at most {_LARGEST:g}, got {_shown([word])}"
        raise Unreadable(f"{place}, {_NAMES[index]}: {expected}")
    return number


def _known(number: float) -> float | None:
    return number if number > 0.0 else None


def _name(word: str) -> str:
    return "" if word.startswith("-") else word


def _shown(words: list[str]) -> str:
    text = " ".join(words)
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
