"""A broker that dies, hangs or refuses ends no Celery worker and no scheduler: tasks sent afterwards run."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery

from monitor.core import env
from monitor.operations.embedded.binaries import valkey_program
from tests.waiting import eventually

QUEUE = "tests"
CELERY = [sys.executable, "-m", "celery", "--app=monitor.celery"]
WORKER = [
    *("worker", "--include=tests.monitor.runs.worker.noted_tasks", f"--queues={QUEUE}", "--concurrency=2"),
    *("--without-gossip", "--without-mingle"),
]


class Broker:
    """A Valkey whose process a test may kill."""

    def __init__(self, directory: Path) -> None:
        self._socket, self._directory = directory / "valkey.sock", directory
        self.url = f"redis+socket://{self._socket}"
        self.client = redis.Redis(unix_socket_path=str(self._socket), socket_timeout=60)
        self.start()

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self._socket), "--save", "", "--loglevel", "warning"]
        argv = [
            str(valkey_program()),
            *options,
            "--enable-debug-command",
            "yes",
            "--dir",
            str(self._directory),
        ]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        assert eventually(self._answers)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _answers(self) -> bool:
        with contextlib.suppress(redis.ConnectionError):
            return bool(self.client.ping())
        return False


class Workers:
    """A worker and a scheduler that use *broker*."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker, self._directory, self._numbers = broker, directory, itertools.count()
        self._app = Celery("sender", broker=broker.url)
        self.worker, self.beat = self._start("worker", WORKER), self._start("beat", ["beat", "--pidfile="])

    def _start(self, name: str, argv: list[str]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "REDIS_URL": self.broker.url, "GRIDCAST_VAR": str(self._directory)}
        with (self._directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*CELERY, *argv], env=environment, cwd=env.ROOT, stdout=log, stderr=subprocess.STDOUT
            )

    def stop(self) -> None:
        for process in (self.worker, self.beat):
            process.kill()
            process.wait()
        self._app.close()

    def logs(self) -> str:
        return "".join((self._directory / f"{name}.log").read_text()[-5000:] for name in ("worker", "beat"))

    def send(self, task: str, *files: Path) -> None:
        self._app.send_task(f"tests.{task}", [str(file) for file in files], queue=QUEUE)

    def file(self) -> Path:
        return self._directory / f"note-{next(self._numbers)}"

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Have the worker run a task during the block."""
        begun, end = self.file(), self.file()
        self.send("run_until", begun, end)
        assert eventually(begun.exists, within_seconds=120), self.logs()
        try:
            yield
        finally:
            end.touch()

    def check(self) -> None:
        """Check that a task runs that is sent now, and that the scheduler sends tasks."""
        file = self.file()
        self.send("note", file)
        assert eventually(lambda: file.exists() or self.worker.poll() is not None), self.logs()
        assert self.worker.poll() is None, self.logs()
        self.broker.client.delete("control")
        assert eventually(lambda: self.broker.client.llen("control")), self.logs()
        assert self.beat.poll() is None, self.logs()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with contextlib.ExitStack() as stack:
        directory = tmp_path_factory.mktemp("broker")
        broker = Broker(directory)
        stack.callback(broker.kill)
        workers = Workers(broker, directory)
        stack.callback(workers.stop)
        with workers.busy():
            pass
        workers.check()
        yield workers


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.nightly)])
def test_a_worker_that_runs_a_task_outlives_the_death_of_its_broker(workers: Workers, kills: int) -> None:
    for _ in range(kills):
        with workers.busy():
            workers.broker.kill()
            workers.broker.start()
        workers.check()


def test_a_broker_that_forgets_everything_gets_the_next_tasks(workers: Workers) -> None:
    with workers.busy():
        workers.broker.client.flushall()
    workers.check()


@pytest.mark.nightly
def test_a_broker_that_hangs_for_longer_than_its_clients_wait_is_used_again(workers: Workers) -> None:
    with workers.busy():
        workers.broker.process.send_signal(signal.SIGSTOP)
        try:
            assert eventually(lambda: "Timeout" in workers.logs()), workers.logs()
        finally:
            workers.broker.process.send_signal(signal.SIGCONT)
    workers.check()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("refuse", "accept"),
    [
        (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]),
        (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]),
    ],
    ids=["read-only", "out of memory"],
)
def test_a_broker_that_refused_to_write_is_used_again(
    workers: Workers, refuse: list[str], accept: list[str]
) -> None:
    with workers.busy():
        workers.broker.client.execute_command(*refuse)  # type: ignore[no-untyped-call]
        try:
            assert eventually(lambda: workers.logs().count("SchedulingError") or "OOM" in workers.logs()), (
                workers.logs()
            )
        finally:
            workers.broker.client.execute_command(*accept)  # type: ignore[no-untyped-call]
    workers.check()
