"""Stand-ins for the commands of PBS and HTCondor: scripts that ask a queue in this process, which runs jobs.

What they print is what the real ones do, as far as their documentation shows it. ``hold`` keeps all jobs in
the queue until ``release``; what ``refuse`` holds is said instead of taking a job.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_CLIENT = """\
import json, socket, sys
asked = [sys.argv[2:], sys.stdin.read() if sys.argv[2] == "condor_submit" else ""]
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    server.sendall(json.dumps(asked).encode() + b"\\n")
    status, out, err = json.loads(server.makefile().read())
sys.stdout.write(out)
sys.stderr.write(err)
raise SystemExit(status)
"""
_USUAL = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/"}

Answer = tuple[int, str, str]


@dataclass
class Queued:
    """A job of the queue."""

    number: int
    name: str
    script: str
    output: str
    submitted: float = field(default_factory=time.time)
    started: float = 0.0
    ended: float = 0.0
    status: int = 0  # negative for a signal
    removed: bool = False
    process: subprocess.Popen[bytes] | None = None

    @property
    def state(self) -> str:
        return "over" if self.ended else "running" if self.started else "waiting"


class StandIn(ABC):
    """A queue; each of its *commands* is a method of that name."""

    commands: Sequence[str]

    def __init__(self) -> None:
        self.jobs: dict[int, Queued] = {}
        self.hold = False
        self.refuse = ""
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()

    @abstractmethod
    def answer(self, argv: Sequence[str], text: str) -> Answer:
        """Return the answer of a command: exit status, stdout, stderr."""

    def add(self, name: str, script: str, output: str) -> Queued:
        job = Queued(next(self._numbers), name, script, output)
        self.jobs[job.number] = job
        threading.Thread(target=self._run, args=(job,), name=f"job {job.number}").start()
        return job

    def remove(self, job: Queued) -> None:
        """As batch systems do: TERM for the first process, then KILL for its session."""
        with self._changed:
            job.removed = True
            self._changed.notify_all()
        if job.process is not None and not job.ended:
            job.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.process.wait(0.5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.process.pid, signal.SIGKILL)

    def release(self) -> None:
        with self._changed:
            self.hold = False
            self._changed.notify_all()

    def close(self) -> None:
        for job in self.jobs.values():
            self.remove(job)

    def _run(self, job: Queued) -> None:
        with self._changed:
            self._changed.wait_for(lambda: job.removed or not self.hold)
        if not job.removed:
            with Path(job.output).open("wb") as output:
                job.started = time.time()
                job.process = subprocess.Popen(
                    ["/bin/sh", job.script],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=_USUAL,
                    start_new_session=True,
                )
                job.status = job.process.wait()
        job.ended = time.time()


class OpenPbs(StandIn):
    """OpenPBS: ended jobs are in the history."""

    commands = ("qsub", "qstat", "qselect", "qdel")

    def answer(self, argv: Sequence[str], text: str) -> Answer:
        command, *rest = argv
        if command == "qsub":
            return self._qsub(rest)
        if command == "qselect":
            wanted = rest[rest.index("-N") + 1]
            return 0, "".join(f"{job.number}.pbs\n" for job in self._living() if job.name == wanted), ""
        if command == "qdel":
            for number in rest:
                self.remove(self.jobs[int(number.partition(".")[0])])
            return 0, "", ""
        return self._qstat(rest)

    def _living(self) -> list[Queued]:
        return [job for job in self.jobs.values() if not job.ended]

    def _qsub(self, rest: Sequence[str]) -> Answer:
        if self.refuse:
            return 188, "", f"{self.refuse}\n"
        job = self.add(rest[rest.index("-N") + 1], rest[-1], rest[rest.index("-o") + 1])
        return 0, f"{job.number}.pbs\n", ""

    def _qstat(self, rest: Sequence[str]) -> Answer:
        number = rest[-1]
        job = self.jobs.get(int(number.partition(".")[0]))
        if job is None:
            return 153, "", f"qstat: Unknown Job Id {number}\n"
        if job.ended and "-x" not in rest:
            history = "Job has finished, use -x or -H to obtain historical job information"
            return 35, "", f"qstat: {number} {history}\n"
        return 0, self._described(job), ""

    def _described(self, job: Queued) -> str:
        letter = {"over": "F", "running": "R", "waiting": "H" if self.hold else "Q"}[job.state]
        code = 256 - job.status if job.status < 0 else job.status
        figures = {
            "Job_Name": job.name,
            "Job_Owner": "alice@login",
            "job_state": letter,
            "queue": "workq",
            "ctime": _utc(job.submitted),
            "Hold_Types": "n",
            "Resource_List.walltime": "00:10:00",
            **({"stime": _utc(job.started)} if job.started else {}),
            **({"Exit_status": str(code)} if job.ended and job.started else {}),
            "substate": "91" if job.removed else "92" if job.ended else "42",
            **({"comment": "Not Running: Insufficient amount of resource: ncpus"} if letter == "Q" else {}),
            "Variable_List": f"PBS_O_HOME=/home/alice,PBS_O_PATH={'/opt/pbs/bin:' * 8}/usr/bin",
        }
        lines = "".join(_broken(f"    {name} = {value}") for name, value in figures.items())
        return f"Job Id: {job.number}.pbs\n{lines}\n"


class Condor(StandIn):
    """HTCondor: ended jobs are in the history."""

    commands = ("condor_submit", "condor_q", "condor_history", "condor_rm")

    def answer(self, argv: Sequence[str], text: str) -> Answer:
        command, *rest = argv
        if command == "condor_submit":
            return self._submit(text)
        if command == "condor_rm":
            for number in rest:
                self.remove(self.jobs[int(number)])
            return (
                0,
                "".join(f"All jobs in cluster {number} have been marked for removal\n" for number in rest),
                "",
            )
        if "-constraint" in rest:
            wanted = rest[rest.index("-constraint") + 1]
            named = [job for job in self.jobs.values() if not job.ended and f'"{job.name}"' in wanted]
            return 0, "".join(f"{job.number}\n" for job in named), ""
        asked = self.jobs.get(int(rest[-1].partition(".")[0]))
        is_known = asked is not None and bool(asked.ended) == (command == "condor_history")
        return 0, self._described(asked) if asked and is_known else "", ""

    def _submit(self, text: str) -> Answer:
        if self.refuse:
            return 1, "", f"\nERROR: {self.refuse}\n"
        attributes = dict(re.findall(r"^\+?(\w+) = (.*)$", text, re.MULTILINE))
        script = attributes["arguments"].strip("\"'").replace("''", "'").replace('""', '"')
        job = self.add(attributes["JobBatchName"].strip('"'), script, attributes["output"])
        return 0, f"{job.number}.0 - {job.number}.0\n", ""

    def _described(self, job: Queued) -> str:
        over = 3 if job.removed else 4
        ad: dict[str, Any] = {
            "JobStatus": {"over": over, "running": 2, "waiting": 5 if self.hold else 1}[job.state],
            "QDate": int(job.submitted),
            "EnteredCurrentStatus": int(job.ended or job.started or job.submitted),
        }
        if job.started:
            ad["JobCurrentStartDate"] = int(job.started)
        if job.removed:
            ad["RemoveReason"] = "via condor_rm (by user alice)"
        elif job.ended and job.status < 0:
            ad.update(ExitBySignal=True, ExitSignal=-job.status, CompletionDate=int(job.ended))
        elif job.ended:
            ad.update(ExitBySignal=False, ExitCode=job.status, CompletionDate=int(job.ended))
        elif self.hold:
            ad["HoldReason"] = "via condor_hold (by user root)"
        return f"[\n{json.dumps(ad, indent=2)}\n]\n"


@contextlib.contextmanager
def served(stand_in: StandIn) -> Iterator[Path]:
    """Answer the commands; a directory in which they are."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            argv, text = json.loads(self.rfile.readline())
            self.wfile.write(json.dumps(stand_in.answer(argv, text)).encode())

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = False

    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        root = Path(directory)
        with Server(str(root / "socket"), Handler) as server, contextlib.ExitStack() as last:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            last.callback(thread.join)
            last.callback(server.shutdown)
            last.callback(stand_in.close)
            yield _commands(root, stand_in.commands)


def _commands(root: Path, names: Sequence[str]) -> Path:
    (root / "client.py").write_text(_CLIENT)
    programs = root / "bin"
    programs.mkdir()
    for name in names:
        script = programs / name
        script.write_text(
            f'#!/bin/sh\nexec {sys.executable} -I -S {root}/client.py {root}/socket {name} "$@"\n'
        )
        script.chmod(0o755)
    return programs


def _utc(at: float) -> str:
    return time.asctime(time.gmtime(at))


def _broken(line: str) -> str:
    """As qstat breaks long lines: the rest goes on after a tab."""
    pieces = [line[start : start + 78] for start in range(0, len(line), 78)]
    return "\n\t".join(pieces) + "\n"
