"""The state of a batch system as a user sees it: running and waiting jobs, and their ages.

Times are seconds since any epoch; calls come in the order of time. Work is processors times seconds. If the
request of a job is unknown, the job is expected to use one processor, and to run as long as earlier jobs of
its user did, or earlier jobs of all users.

A job is *held* if it has waited for longer than any job of its queue that has started, and if 59 jobs that
were submitted to the queue later have started: it waits for something else than the others, for example for
its user. A held job is no evidence for the waits of other jobs, and no longer counts as waiting.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field

_DAY_SECONDS = 86400.0
_HOUR_SECONDS = 3600.0
_SIZES = (2.0, 5.0, 17.0, 65.0)  # the least processors of the size classes
_HOURS = (1.0, 4.0, 12.0, 24.0)  # the upper limits of the classes of requested times
_USER_RATE = 0.2  # the weight of the newest duration in the typical one of a user
_RATE = 0.05  # the same weight for the typical duration of a class, or of all jobs
LONGER = 2.0  # times the longest wait so far: the limit of all bounds
_CROWD = 100  # waiting jobs of one user: with fewer, the other jobs of the machine decide
_LAST_STARTS = 10  # of a user: their pace
_DRAIN_MARGIN = 1.25
_OVERTAKEN = 59  # with confidence 95 %, fewer than 5 % of jobs wait for longer than 59 others
SIGNALS = 29  # of the machine, the class and the user
QUEUE_SIGNALS = 4  # of the queue; the last ones of ``QueueState.signals``


@dataclass(slots=True, frozen=True)
class QueuedJob:
    """The properties of a job at its submission; "" and None mean unknown."""

    number: int
    submitted_seconds: float
    queue: str = ""
    user: str = ""
    processors: float | None = None
    requested_seconds: float | None = None


@dataclass(slots=True)
class TypicalDuration:
    """The exponentially smoothed logarithm of durations, which may differ by orders of magnitude."""

    rate: float
    log: float | None = None
    last_log: float = 0.0

    def learn(self, seconds: float) -> None:
        self.last_log = math.log1p(seconds)
        self.log = self.last_log if self.log is None else self.log + self.rate * (self.last_log - self.log)


@dataclass(slots=True)
class JobLoad:
    """The waiting and running jobs of one user, one class or the whole machine."""

    waits: TypicalDuration
    waiting: dict[int, float] = field(default_factory=dict)  # submit times, by number
    order: deque[int] = field(
        default_factory=deque
    )  # jobs by submission; the first one is waiting, the others may have started
    waiting_work: float = 0.0
    waiting_processors: float = 0.0
    running: int = 0
    running_processors: float = 0.0
    running_until: float = 0.0  # sum over running jobs of processors times the expected time of the end
    longest_seconds: float = 0.0  # wait of a started job that was not held
    overtakes: int = 0  # jobs that started before the job that is the first of ``order`` now
    last_starts: deque[float] = field(default_factory=deque)  # times, since jobs have been waiting

    def oldest_seconds(self, at_seconds: float) -> float:
        """Return the seconds that the oldest waiting job has waited; 0 if no job waits."""
        return max(0.0, at_seconds - self.waiting[self.order[0]]) if self.order else 0.0

    def drain_seconds(self, at_seconds: float) -> float:
        """Return a bound on the time until the waiting jobs and one more start, at the recent pace.

        0 if no crowd waits, if its oldest job has been overtaken, or if too few jobs have started.
        """
        starts = self.last_starts
        if len(self.waiting) < _CROWD or self.overtakes or len(starts) < _LAST_STARTS:
            return 0.0
        pace_seconds = (at_seconds - starts[0]) / len(starts)
        return _DRAIN_MARGIN * pace_seconds * (len(self.waiting) + 1)

    def start(self, number: int, wait_seconds: float, at_seconds: float) -> None:
        """Learn the wait of the waiting job *number*, which starts at *at_seconds*."""
        self.last_starts.append(at_seconds)
        if len(self.last_starts) > _LAST_STARTS:
            self.last_starts.popleft()
        self.waits.learn(wait_seconds)
        self.longest_seconds = max(self.longest_seconds, wait_seconds)
        self.overtakes += number != self.order[0]

    def leave(self, number: int) -> None:
        """Remove the job *number* from the waiting jobs."""
        del self.waiting[number]
        if not self.waiting:
            self.last_starts.clear()
        if self.order[0] == number:
            self.overtakes = 0
            while self.order and self.order[0] not in self.waiting:
                self.order.popleft()

    def remaining_work(self, at_seconds: float) -> float:
        """Return the remaining work of the running jobs if each uses its requested time."""
        return max(0.0, self.running_until - self.running_processors * at_seconds)


@dataclass(slots=True)
class ActiveJob:
    """A waiting or running job with the processors and seconds that it is expected to use."""

    job: QueuedJob
    processors: float
    seconds: float
    until_seconds: float = 0.0  # while it runs
    is_held: bool = False

    @property
    def work(self) -> float:
        return self.processors * self.seconds


@dataclass(slots=True)
class QueueState:
    """All waiting and running jobs."""

    _whole: JobLoad = field(default_factory=lambda: JobLoad(TypicalDuration(_RATE)))
    _queues: dict[str, JobLoad] = field(default_factory=dict)
    _users: dict[str, JobLoad] = field(default_factory=dict)
    _classes: dict[str, JobLoad] = field(default_factory=dict)
    active_jobs: dict[int, ActiveJob] = field(default_factory=dict)
    _capacity: float = 1.0  # the most processors ever in use
    _runtimes: dict[str, TypicalDuration] = field(default_factory=dict)  # by user; "" for all

    def submit(self, job: QueuedJob) -> None:
        """Add *job* to the waiting jobs."""
        active = self.active_jobs[job.number] = self._with_demand(job)
        for load in self._loads(job):
            load.waiting[job.number] = job.submitted_seconds
            load.order.append(job.number)
            load.waiting_work += active.work
            load.waiting_processors += active.processors

    def start(self, number: int, at_seconds: float) -> None:
        """Move the waiting job *number* to the running jobs."""
        active = self.active_jobs[number]
        active.until_seconds = at_seconds + active.seconds
        for load in self._loads(active.job):
            if not active.is_held:
                load.start(number, max(0.0, at_seconds - active.job.submitted_seconds), at_seconds)
            load.running += 1
            load.running_processors += active.processors
            load.running_until += active.processors * active.until_seconds
        self._leave_queue(active)
        self._capacity = max(self._capacity, self._whole.running_processors)
        self._hold_oldest(self._queues[active.job.queue], at_seconds)

    def _hold_oldest(self, load: JobLoad, at_seconds: float) -> None:
        """Remove the oldest waiting job of a queue from all loads if it is held."""
        if load.overtakes >= _OVERTAKEN and load.oldest_seconds(at_seconds) > load.longest_seconds:
            active = self.active_jobs[load.order[0]]
            self._leave_queue(active)
            active.is_held = True

    def withdraw(self, number: int) -> None:
        """Remove the waiting job *number*, which was cancelled."""
        self._leave_queue(self.active_jobs.pop(number))

    def end(self, number: int, at_seconds: float) -> None:
        """Remove the job *number*, whose run ended at *at_seconds*."""
        active = self.active_jobs.pop(number)
        ran_seconds = max(0.0, at_seconds - (active.until_seconds - active.seconds))
        for name in (active.job.user, ""):
            self._runtimes.setdefault(name, TypicalDuration(_USER_RATE)).learn(ran_seconds)
        for load in self._loads(active.job):
            load.running -= 1
            load.running_processors -= active.processors
            load.running_until -= active.processors * active.until_seconds

    def _with_demand(self, job: QueuedJob) -> ActiveJob:
        """Return *job* with its requested processors and seconds; typical numbers replace unknown numbers."""
        return ActiveJob(job, job.processors or 1.0, job.requested_seconds or self._usual_runtime(job.user))

    def limit_seconds(self, queue: str, at_seconds: float) -> float:
        """Return the limit of bounds in *queue*, in seconds.

        It is ``LONGER`` times the longest wait of the queue so far, or the time that its oldest waiting job
        has waited, if this is more.
        """
        if not (of_queue := self._queues.get(queue)):
            return 0.0
        return max(LONGER * of_queue.longest_seconds, of_queue.oldest_seconds(at_seconds))

    def drain_seconds(self, user: str, at_seconds: float) -> float:
        """Return a bound on the wait of the next job of *user* behind the user's own crowd of waiting jobs.

        The jobs start in the order of their submission, one after another; 0 if there is no such crowd.
        """
        of_user = self._users.get(user) if user else None
        return of_user.drain_seconds(at_seconds) if of_user else 0.0

    def signals(self, job: QueuedJob, at_seconds: float) -> list[float]:
        """Return the numbers from which the wait of *job* is predicted at its submission."""
        active, log = self._with_demand(job), math.log1p
        whole, typical_log = self._whole, self._whole.waits.log or 0.0
        of_queue = self._queues.get(job.queue) or JobLoad(TypicalDuration(_RATE))
        of_class = self._classes.get(class_of(job)) or JobLoad(TypicalDuration(_RATE))
        of_user = self._users.get(job.user) or JobLoad(TypicalDuration(_USER_RATE))
        capacity = max(self._capacity, active.processors)
        free = capacity - whole.running_processors - whole.waiting_processors
        angle = 2.0 * math.pi * (at_seconds % _DAY_SECONDS) / _DAY_SECONDS
        return [
            log(active.processors),
            log(active.seconds),
            log(active.processors) * log(active.seconds),
            active.processors / capacity,
            *(float(active.seconds > hours * _HOUR_SECONDS) for hours in _HOURS),
            log(len(whole.waiting)),
            log(whole.waiting_work / capacity),
            log(whole.oldest_seconds(at_seconds)),
            float(not whole.waiting),
            log(whole.remaining_work(at_seconds) / capacity),
            whole.running_processors / capacity,
            float(free >= active.processors),
            typical_log,
            log(len(of_class.waiting)),
            log(of_class.oldest_seconds(at_seconds)),
            typical_log if of_class.waits.log is None else of_class.waits.log,
            log(len(of_user.waiting)),
            log(of_user.waiting_work / capacity),
            log(of_user.oldest_seconds(at_seconds)),
            log(of_user.running),
            log(100.0 * of_user.running_processors / capacity),
            typical_log if of_user.waits.log is None else of_user.waits.log,
            typical_log if of_user.waits.log is None else of_user.waits.last_log,
            float(of_user.waits.log is None),
            math.sin(angle),
            math.cos(angle),
            log(of_queue.oldest_seconds(at_seconds)),
            log(len(of_queue.waiting)),
            typical_log if of_queue.waits.log is None else of_queue.waits.log,
            typical_log if of_queue.waits.log is None else of_queue.waits.last_log,
        ]

    def _loads(self, job: QueuedJob) -> tuple[JobLoad, JobLoad, JobLoad, JobLoad]:
        """Return the loads of the whole machine, and of the queue, the class and the user of *job*."""
        name, user = class_of(job), job.user
        if job.queue not in self._queues:
            self._queues[job.queue] = JobLoad(TypicalDuration(_RATE))
        if name not in self._classes:
            self._classes[name] = JobLoad(TypicalDuration(_RATE))
        if user not in self._users:
            self._users[user] = JobLoad(TypicalDuration(_USER_RATE))
        return self._whole, self._queues[job.queue], self._classes[name], self._users[user]

    def _leave_queue(self, active: ActiveJob) -> None:
        """Remove a job from the loads; a held job has already left them."""
        if active.is_held:
            return
        for load in self._loads(active.job):
            load.leave(active.job.number)
            load.waiting_work = load.waiting_work - active.work if load.waiting else 0.0
            load.waiting_processors -= active.processors

    def _usual_runtime(self, user: str) -> float:
        usual = self._runtimes.get(user) or self._runtimes.get("")
        return math.expm1(usual.log) if usual and usual.log is not None else _HOUR_SECONDS


def class_of(job: QueuedJob) -> str:
    """Return the class of *job*: jobs of one queue with similar requests are of one class."""
    size = bisect_left(_SIZES, job.processors or 1.0)
    hours = bisect_left(_HOURS, (job.requested_seconds or 0.0) / _HOUR_SECONDS)
    return f"{job.queue} {size} {hours}"
