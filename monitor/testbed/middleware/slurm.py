"""A Slurm cluster: munged, slurmctld and the slurmds of several nodes, all on this host.

It runs in the foreground as whoever starts it, with a key of its own, on ports that the kernel chooses; an
ordinary user's runs that user's jobs alone. Nodes have two processors each, whatever the host has. There are
two partitions: ``short`` with all nodes, up to an hour a job, and ``long`` with the first node.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.testbed.errors import NotServing, TestbedError
from monitor.testbed.middleware.programs import locate
from monitor.testbed.middleware.server_process import START_SECONDS, free_port, listens, serving
from probes.grid import Completed
from reporters import process

SERVERS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue", "sacct")
PARTITIONS = ("short", "long")
CPUS_OF_A_NODE = 2
_STATES = ("sinfo", "-h", "-N", "-p", "short", "-o", "%T")
_CLIENT_SECONDS = 30.0
_POLL_SECONDS = 0.05
# Jobs begin 0.3 s after they are handed in, with what scheduling this often costs; a controller that is gone
# is given up soon; a node that is silent is down after some seconds; a job that is over is known for long.
_CONFIGURATION = """\
ClusterName=gridcast
SlurmctldHost={hostname}({address})
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
EnforcePartLimits=ALL
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,bf_interval=1,sched_interval=1,sched_min_interval=1
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
MessageTimeout=5
SlurmdTimeout=10
KillWait=2
MinJobAge=3600
"""


@dataclass(frozen=True)
class SlurmOptions:
    """How a cluster is to be: its servers listen on *address* of a host that calls itself *hostname*.

    *launcher* is what every command begins with, such as one that enters a network namespace; the program
    must stay in the foreground behind it. *lines* are more lines of slurm.conf.
    """

    nodes: int = 2
    address: str = "127.0.0.1"
    hostname: str = ""
    launcher: Sequence[str] = ()
    lines: Sequence[str] = ()


class SlurmCluster:
    """A cluster that runs. *programs* is a directory of clients that find it, to be first on a PATH."""

    def __init__(self, directory: Path, options: SlurmOptions, last: contextlib.ExitStack) -> None:
        self.directory = directory
        self.configuration = directory / "slurm.conf"
        self.programs = directory / "bin"
        self.nodes = [f"cn{number + 1}" for number in range(options.nodes)]
        self._options = options
        self._last = last
        self._running: dict[str, contextlib.ExitStack] = {}
        self._ports = _ports(options)
        self._prepare()

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to find the cluster, instead of ``programs``."""
        return {"SLURM_CONF": str(self.configuration)}

    def run(self, *argv: str) -> str:
        """What a client prints. Raises TestbedError if it fails."""
        done = self._client(argv)
        if done.returncode != 0:
            raise TestbedError(f"{' '.join(argv)} failed: {done.stderr.strip()}")
        return done.stdout

    def jobs(self) -> list[str]:
        """The names of the jobs that wait, run or are about to end."""
        return self.run("squeue", "-h", "-o", "%j").split()

    def close_partitions(self, state: str = "DOWN") -> None:
        """Start no more jobs; DRAIN takes no new ones either. ``open_partitions`` undoes it."""
        for name in PARTITIONS:
            self.run("scontrol", "update", f"PartitionName={name}", f"State={state}")

    def open_partitions(self) -> None:
        self.close_partitions("UP")

    def drain_nodes(self, reason: str) -> None:
        """Let running jobs end and start no more, because of *reason*. ``resume_nodes`` undoes it."""
        self.run("scontrol", "update", f"NodeName={','.join(self.nodes)}", "State=DRAIN", f"Reason={reason}")

    def resume_nodes(self) -> None:
        """Let all nodes work again; one that has come back by itself is left as it is."""
        for node in self.nodes:
            done = self._client(["scontrol", "update", f"NodeName={node}", "State=RESUME"])
            if done.returncode != 0 and "Invalid node state" not in done.stderr:
                raise TestbedError(f"cannot resume {node}: {done.stderr.strip()}")

    def stop_controller(self) -> None:
        self._running.pop("slurmctld").close()

    def start_controller(self) -> None:
        """It goes on where it stopped."""
        argv = [locate("slurmctld"), "-D"]
        port = self._ports["slurmctld"]
        self._start("slurmctld", argv, lambda: listens(self._options.address, port))

    def lose_node(self, name: str) -> None:
        """Let the controller know that a node is lost, then kill it and everything on it."""
        self.run("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=lost")
        self._running.pop(name).close()

    def start_node(self, name: str) -> None:
        port = self._ports[name]
        self._start(name, [locate("slurmd"), "-D", "-N", name], lambda: listens(self._options.address, port))

    def start(self) -> None:
        """Start everything. Raises MissingProgram, NotServing."""
        self._start("munged", _munged(self.directory), (self.directory / "munge" / "socket").is_socket)
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)

    def await_idle(self) -> None:
        """Until every node is up and has nothing to do. Raises NotServing."""
        until = time.monotonic() + START_SECONDS
        while (states := self._client(_STATES).stdout.split()) != ["idle"] * len(self.nodes):
            if time.monotonic() > until:
                raise NotServing(f"the nodes of Slurm are not idle but {' '.join(states) or 'unknown'}")
            time.sleep(_POLL_SECONDS)

    def _start(self, name: str, argv: Sequence[str], ready: Callable[[], bool]) -> None:
        argv = [*self._options.launcher, *argv]
        log = self.directory / f"{name}.log"
        self._running[name] = self._last.enter_context(contextlib.ExitStack())
        self._running[name].enter_context(
            serving(argv, ready=ready, env=self.environment, cwd=self.directory, log=log)
        )

    def _client(self, argv: Sequence[str]) -> Completed:
        env = {**os.environ, **self.environment}
        return process.run([*self._options.launcher, *argv], timeout_seconds=_CLIENT_SECONDS, env=env)

    def _prepare(self) -> None:
        for name in ("bin", "munge", "spool", "state"):
            (self.directory / name).mkdir(parents=True)
        self.directory.chmod(0o755)
        (self.directory / "munge").chmod(0o755)
        key = self.directory / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        self.configuration.write_text(_configuration(self.directory, self._options, self._ports))
        for client in CLIENTS:
            self._wrap(client)

    def _wrap(self, client: str) -> None:
        wrapper = self.programs / client
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={self.configuration} exec {locate(client)} "$@"\n')
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


@contextlib.contextmanager
def cluster(directory: Path, options: SlurmOptions = SlurmOptions()) -> Iterator[SlurmCluster]:
    """Run a cluster in a new *directory* until the context ends; all its nodes are idle at first.

    The path of *directory* must be short, 80 bytes or so: there is a socket in it.

    Raises:
        MissingProgram: something is not installed.
        NotServing: a server did not come up; with what it said.
    """
    with contextlib.ExitStack() as last:
        made = SlurmCluster(directory, options, last)
        made.start()
        made.await_idle()
        yield made


def _munged(root: Path) -> list[str]:
    """Forced: it dislikes a directory below /tmp, which others may write to."""
    files = {"key": "munge.key", "socket": "munge/socket", "pid": "munge/pid", "seed": "munge/seed"}
    options = [f"--{name}-file={root / file}" for name, file in files.items() if name != "socket"]
    socket_and_log = [f"--socket={root / files['socket']}", f"--log-file={root / 'munged.log'}"]
    return [locate("munged"), "--foreground", "--force", "--num-threads=2", *socket_and_log, *options]


def _ports(options: SlurmOptions) -> dict[str, int]:
    """A port for the controller and each node, all different."""
    names = ["slurmctld", *(f"cn{number + 1}" for number in range(options.nodes))]
    ports: set[int] = set()
    while len(ports) < len(names):
        ports.add(free_port(options.address))
    return dict(zip(names, ports, strict=True))


def _configuration(root: Path, options: SlurmOptions, ports: Mapping[str, int]) -> str:
    hostname = options.hostname or socket.gethostname().partition(".")[0]
    where = {"root": root, "hostname": hostname, "address": options.address, "user": getpass.getuser()}
    host = f"NodeHostname={hostname} NodeAddr={options.address} CPUs={CPUS_OF_A_NODE}"
    nodes = {name: port for name, port in ports.items() if name != "slurmctld"}
    lines = [
        *options.lines,
        *(f"NodeName={name} Port={port} {host}" for name, port in nodes.items()),
        f"PartitionName=short Nodes={','.join(nodes)} Default=YES MaxTime=60",
        "PartitionName=long Nodes=cn1 MaxTime=INFINITE",
    ]
    return _CONFIGURATION.format(port=ports["slurmctld"], **where) + "\n".join(lines) + "\n"
