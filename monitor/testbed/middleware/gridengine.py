"""A Grid Engine cell: sge_qmaster and one sge_execd on this host, with a queue of two slots.

The cell runs in the foreground as root, because the execution daemon switches users; its jobs belong to root
too. All files of the cell are in one directory. Its ports are free ports, chosen at the start.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from monitor.testbed.errors import NotServing, TestbedError
from monitor.testbed.middleware.programs import locate
from monitor.testbed.middleware.server_process import START_SECONDS, free_port, listens, serving
from reporters import process

SERVERS = ("sge_qmaster", "sge_execd")
CLIENTS = ("qsub", "qstat", "qdel", "qacct", "qconf", "qmod")
_LIBRARY = Path("/usr/lib/gridengine")
_SHARE = Path("/usr/share/gridengine")
_COMMAND_SECONDS = 60.0
_POLL_SECONDS = 0.05
_BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {common};{spool}/qmaster
binary_path /usr/sbin
qmaster_spool_dir {spool}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
# Changes to the distribution's defaults: root may have jobs, and accounting is written at once.
_CONFIGURATION = {
    "execd_spool_dir": "{spool}/execd",
    "mailer": "/bin/true",
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:01",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 "
    "joblog=false sharelog=00:00:00",
}
_SCHEDULER = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "load_adjustment_decay_time": "0:0:0",
    "job_load_adjustments": "NONE",
    "schedd_job_info": "true",
}
_QUEUE = {
    "qname": "all.q",
    "hostlist": "{host}",
    "slots": "2",
    "load_thresholds": "NONE",
    "pe_list": "NONE",
    "shell": "/bin/sh",
}


@dataclass(frozen=True)
class GridEngineCell:
    """A running cell. *programs* is a directory of clients for this cell, to be put first on a PATH."""

    directory: Path
    host: str
    ports: tuple[int, int]

    @property
    def programs(self) -> Path:
        return self.directory / "bin"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment with which programs of Grid Engine find the cell."""
        return {
            "SGE_ROOT": str(self.directory / "root"),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(self.ports[0]),
            "SGE_EXECD_PORT": str(self.ports[1]),
            "SGE_ND": "1",  # no daemons: in the foreground
        }

    def run(self, *argv: str) -> str:
        """Run a program of the cell; return its output. Raises TestbedError if it fails."""
        environment = {
            **os.environ,
            **self.environment,
            "PATH": f"{self.programs}:{os.environ.get('PATH', os.defpath)}",
        }
        done = process.run(argv, timeout_seconds=_COMMAND_SECONDS, env=environment)
        if done.returncode != 0:
            raise TestbedError(f"{' '.join(argv)} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def jobs(self) -> list[str]:
        """Return the lines of ``qstat`` about pending, running and ending jobs."""
        return self.run("qstat", "-u", "*").splitlines()[2:]


@contextlib.contextmanager
def cell(directory: Path) -> Iterator[GridEngineCell]:
    """Run a cell in a new *directory* until the context ends. For root only.

    Raises:
        MissingProgram: a program is not installed.
        NotServing: a server did not come up; the message has its output.
    """
    ports = (free_port("127.0.0.1"), free_port("127.0.0.1"))
    running_cell = GridEngineCell(directory, socket.gethostname(), ports)
    _prepare(running_cell)
    with contextlib.ExitStack() as running:
        for program, port in zip(SERVERS, ports, strict=True):
            argv = [str(_LIBRARY / program)]
            log = directory / "spool" / program.removeprefix("sge_") / "messages"
            server = serving(argv, ready=_listening(port), env=running_cell.environment, log=log)
            running.enter_context(server)
            if program == "sge_qmaster":
                _set_up(running_cell)
        _await_host(running_cell)
        yield running_cell


def _listening(port: int) -> Callable[[], bool]:
    return lambda: listens("127.0.0.1", port)


def _prepare(cell: GridEngineCell) -> None:
    """Write the files that the master needs before its start."""
    root, spool, common = (cell.directory / name for name in ("root", "spool", "root/default/common"))
    for directory in (common, spool / "qmaster" / "job_scripts", spool / "execd", cell.programs):
        directory.mkdir(parents=True)
    architecture = cell.run(str(_SHARE / "util" / "arch")).strip()
    for name in ("bin", "lib", "utilbin"):
        (root / name).mkdir()
        (root / name / architecture).symlink_to(_LIBRARY)
    (root / "util").symlink_to(_SHARE / "util")
    (common / "act_qmaster").write_text(f"{cell.host}\n")
    (common / "host_aliases").write_text(f"{cell.host} localhost\n")  # its address may be on loopback
    (common / "bootstrap").write_text(_BOOTSTRAP.format(common=common, spool=spool))
    _initialize(cell, common, spool)
    for client in CLIENTS:
        _wrap(cell, client)


def _initialize(cell: GridEngineCell, common: Path, spool: Path) -> None:
    configuration = cell.directory / "configuration"
    text = (_SHARE / "default-configuration").read_text()
    configuration.write_text(_with(text, _CONFIGURATION, spool=spool))
    parameters = f"{common};{spool / 'qmaster'}"
    cell.run(str(_LIBRARY / "spoolinit"), "classic", "libspoolc", parameters, "init")
    defaults = str(_LIBRARY / "spooldefaults")
    cell.run(defaults, "configuration", str(configuration))
    cell.run(defaults, "complexes", str(_SHARE / "util/resources/centry"))
    cell.run(defaults, "usersets", str(_SHARE / "util/resources/usersets"))
    cell.run(defaults, "managers", "root")


def _set_up(cell: GridEngineCell) -> None:
    """Configure hosts, the scheduler and the queue of the running master."""
    cell.run("qconf", "-ah", cell.host)
    cell.run("qconf", "-as", cell.host)
    scheduler, queue = cell.directory / "scheduler", cell.directory / "queue"
    scheduler.write_text(_with(cell.run("qconf", "-ssconf"), _SCHEDULER))
    cell.run("qconf", "-Msconf", str(scheduler))
    queue.write_text(_with(cell.run("qconf", "-sq"), _QUEUE, host=cell.host))
    cell.run("qconf", "-Aq", str(queue))


def _await_host(cell: GridEngineCell) -> None:
    """Wait until the queue can run jobs, which is when its host has reported a load."""
    until = time.monotonic() + START_SECONDS
    while " -NA- " in (queues := cell.run("qstat", "-f")):
        if time.monotonic() > until:
            raise NotServing(f"the host of Grid Engine was not ready in time: {queues.strip()}")
        time.sleep(_POLL_SECONDS)


def _with(text: str, values: dict[str, str], **parameters: object) -> str:
    """Return *text*, which has a name and a value in each line, with the values of the names in *values*.

    *parameters* replace the fields, such as ``{host}``, in *values*.
    """
    rows = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    defaults = {row[0]: row[1] if len(row) > 1 else "" for row in rows}
    new = {name: value.format(**parameters) for name, value in values.items()}
    return "".join(f"{name} {value}\n" for name, value in {**defaults, **new}.items())


def _wrap(cell: GridEngineCell, client: str) -> None:
    """Write a script that runs *client* for the cell.

    Debian's script for a client runs some twenty processes, a compiler among them, to find the architecture.
    """
    locate(client)
    assignments = " ".join(f"{name}={value}" for name, value in cell.environment.items())
    wrapper = cell.programs / client
    wrapper.write_text(f'#!/bin/sh\n{assignments} exec {_LIBRARY / client} "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
