"""A batch system as it is seen by who submits a job: what runs, what waits, and for how long by now.

Times are seconds since any epoch; the calls come in the order of time. Work is processors times seconds. What
a job asked for may be unknown: a job without processors has one, and one without a time is expected to run as
long as the jobs of its user did, or any jobs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field

_DAY_SECONDS = 86400.0
_HOUR_SECONDS = 3600.0
_SIZES = (2.0, 5.0, 17.0, 65.0)  # processors from which on a job is of the next size class
_HOURS = (1.0, 4.0, 12.0, 24.0)  # up to which a job is of one class of requested times
_NEWS = 0.2  # the weight of the newest in what is usual for a user
_NEWS_OF_MANY = 0.05
SIGNALS = 29  # how many ``Backlog.signals`` are


@dataclass(slots=True, frozen=True)
class QueuedJob:
    """What is known of a job when it is submitted; "" and None are not known."""

    number: int
    submitted_seconds: float
    queue: str = ""
    user: str = ""
    processors: float | None = None
    requested_seconds: float | None = None


@dataclass(slots=True)
class Usual:
    """What is usual of a quantity that is many times larger once than another time; newer ones count more."""

    news: float
    log: float | None = None
    last_log: float = 0.0

    def learn(self, seconds: float) -> None:
        self.last_log = math.log1p(seconds)
        self.log = self.last_log if self.log is None else self.log + self.news * (self.last_log - self.log)


@dataclass(slots=True)
class Load:
    """Jobs that wait or run, of one user, one class or the whole machine."""

    waits: Usual
    waiting: dict[int, float] = field(default_factory=dict)  # when they were submitted, by number
    order: deque[int] = field(default_factory=deque)  # the first of these waits, those behind it may not
    waiting_work: float = 0.0
    waiting_processors: float = 0.0
    running: int = 0
    running_processors: float = 0.0
    running_until: float = 0.0  # the sum of processors times the second until which they may run

    def oldest_seconds(self, at_seconds: float) -> float:
        """For how long the job that was submitted first has waited; 0 if none waits."""
        return max(0.0, at_seconds - self.waiting[self.order[0]]) if self.order else 0.0

    def remaining_work(self, at_seconds: float) -> float:
        """What is left of the work that runs, if all of it takes as long as was asked for."""
        return max(0.0, self.running_until - self.running_processors * at_seconds)


@dataclass(slots=True)
class Task:
    """A job that waits or runs, with what it is expected to need."""

    job: QueuedJob
    processors: float
    seconds: float
    until_seconds: float = 0.0  # while it runs

    @property
    def work(self) -> float:
        return self.processors * self.seconds


@dataclass(slots=True)
class Backlog:
    """All jobs that wait or run."""

    _whole: Load = field(default_factory=lambda: Load(Usual(_NEWS_OF_MANY)))
    _users: dict[str, Load] = field(default_factory=dict)
    _classes: dict[str, Load] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    _capacity: float = 1.0  # the most processors that were ever in use
    _runtimes: dict[str, Usual] = field(default_factory=dict)  # of users; "" of all

    def submit(self, job: QueuedJob) -> None:
        """*job* begins to wait."""
        task = self.tasks[job.number] = self._task(job)
        for load in self._loads(job):
            load.waiting[job.number] = job.submitted_seconds
            load.order.append(job.number)
            load.waiting_work += task.work
            load.waiting_processors += task.processors

    def start(self, number: int, at_seconds: float) -> None:
        """The job begins to run."""
        task = self.tasks[number]
        task.until_seconds = at_seconds + task.seconds
        for load in self._leave_queue(task):
            load.waits.learn(max(0.0, at_seconds - task.job.submitted_seconds))
            load.running += 1
            load.running_processors += task.processors
            load.running_until += task.processors * task.until_seconds
        self._capacity = max(self._capacity, self._whole.running_processors)

    def withdraw(self, number: int) -> None:
        """The job will never run."""
        self._leave_queue(self.tasks.pop(number))

    def end(self, number: int, at_seconds: float) -> None:
        """The job has run."""
        task = self.tasks.pop(number)
        ran_seconds = max(0.0, at_seconds - (task.until_seconds - task.seconds))
        for name in (task.job.user, ""):
            self._runtimes.setdefault(name, Usual(_NEWS)).learn(ran_seconds)
        for load in self._loads(task.job):
            load.running -= 1
            load.running_processors -= task.processors
            load.running_until -= task.processors * task.until_seconds

    def _task(self, job: QueuedJob) -> Task:
        """*job*, with what it did not ask for filled in."""
        return Task(job, job.processors or 1.0, job.requested_seconds or self._usual_runtime(job.user))

    def oldest_seconds(self, at_seconds: float) -> float:
        """For how long the job that waits longest has; 0 if none does."""
        return self._whole.oldest_seconds(at_seconds)

    def signals(self, job: QueuedJob, at_seconds: float) -> list[float]:
        """What may say for how long *job* waits if it is submitted now: ``SIGNALS`` numbers."""
        task, log = self._task(job), math.log1p
        whole, anywhere = self._whole, self._whole.waits.log or 0.0
        alike = self._classes.get(class_of(job)) or Load(Usual(_NEWS_OF_MANY))
        own = self._users.get(job.user) or Load(Usual(_NEWS))
        capacity = max(self._capacity, task.processors)
        free = capacity - whole.running_processors - whole.waiting_processors
        angle = 2.0 * math.pi * (at_seconds % _DAY_SECONDS) / _DAY_SECONDS
        return [
            log(task.processors),
            log(task.seconds),
            log(task.processors) * log(task.seconds),
            task.processors / capacity,
            *(float(task.seconds > hours * _HOUR_SECONDS) for hours in _HOURS),
            log(len(whole.waiting)),
            log(whole.waiting_work / capacity),
            log(whole.oldest_seconds(at_seconds)),
            float(not whole.waiting),
            log(whole.remaining_work(at_seconds) / capacity),
            whole.running_processors / capacity,
            float(free >= task.processors),
            anywhere,
            log(len(alike.waiting)),
            log(alike.oldest_seconds(at_seconds)),
            anywhere if alike.waits.log is None else alike.waits.log,
            log(len(own.waiting)),
            log(own.waiting_work / capacity),
            log(own.oldest_seconds(at_seconds)),
            log(own.running),
            log(100.0 * own.running_processors / capacity),
            anywhere if own.waits.log is None else own.waits.log,
            anywhere if own.waits.log is None else own.waits.last_log,
            float(own.waits.log is None),
            math.sin(angle),
            math.cos(angle),
        ]

    def _loads(self, job: QueuedJob) -> tuple[Load, Load, Load]:
        """The whole machine, those of the same class, and those of the same user."""
        name, user = class_of(job), job.user
        if name not in self._classes:
            self._classes[name] = Load(Usual(_NEWS_OF_MANY))
        if user not in self._users:
            self._users[user] = Load(Usual(_NEWS))
        return self._whole, self._classes[name], self._users[user]

    def _leave_queue(self, task: Task) -> tuple[Load, Load, Load]:
        loads = self._loads(task.job)
        for load in loads:
            del load.waiting[task.job.number]
            while load.order and load.order[0] not in load.waiting:
                load.order.popleft()
            load.waiting_work = load.waiting_work - task.work if load.waiting else 0.0
            load.waiting_processors -= task.processors
        return loads

    def _usual_runtime(self, user: str) -> float:
        usual = self._runtimes.get(user) or self._runtimes.get("")
        return math.expm1(usual.log) if usual and usual.log is not None else _HOUR_SECONDS


def class_of(job: QueuedJob) -> str:
    """Jobs of one queue that ask for about as much are of one class."""
    size = bisect_left(_SIZES, job.processors or 1.0)
    hours = bisect_left(_HOURS, (job.requested_seconds or 0.0) / _HOUR_SECONDS)
    return f"{job.queue} {size} {hours}"
