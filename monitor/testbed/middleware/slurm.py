"""A Slurm cluster: munged, slurmctld and the slurmds of several nodes, all on this host.

The cluster runs in the foreground as the current user, with its own key, on free ports; the cluster of an
ordinary user runs only jobs of that user. Each node has two processors, however many the host has. The
partition ``short`` has all nodes and a time limit of an hour; the partition ``long`` has the first node.
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
_CLIENT_SECONDS = 60.0
_POLL_SECONDS = 0.05
# Jobs start 0.3 s after their submission, at the cost of frequent scheduling; clients give up an unreachable
# controller soon; a silent node is down after seconds; ended jobs stay known for an hour.
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
    """Options of a cluster.

    Attributes:
        address: IP address on which the servers listen.
        hostname: name of the host.
        launcher: command that runs every command of the cluster, e.g. to enter a network namespace; it must
            stay in the foreground.
        lines: further lines of slurm.conf.
    """

    nodes: int = 2
    address: str = "127.0.0.1"
    hostname: str = ""
    launcher: Sequence[str] = ()
    lines: Sequence[str] = ()


class SlurmCluster:
    """A running cluster. *programs* is a directory of clients for this cluster, to be put first on a PATH."""

    def __init__(self, directory: Path, options: SlurmOptions, stack: contextlib.ExitStack) -> None:
        self.directory = directory
        self.configuration = directory / "slurm.conf"
        self.programs = directory / "bin"
        self.nodes = [f"cn{number + 1}" for number in range(options.nodes)]
        self._options = options
        self._stack = stack
        self._running: dict[str, contextlib.ExitStack] = {}
        self._ports = _ports(options)
        self._prepare()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment with which a client that is not in ``programs`` finds the cluster."""
        return {"SLURM_CONF": str(self.configuration)}

    def run(self, *argv: str) -> str:
        """Run a client of Slurm; return its output. Raises TestbedError if it fails."""
        done = self._client(argv)
        if done.returncode != 0:
            raise TestbedError(f"{' '.join(argv)} failed: {done.stderr.strip()}")
        return done.stdout

    def jobs(self) -> list[str]:
        """Return the names of pending, running and completing jobs."""
        return self.run("squeue", "-h", "-o", "%j").split()

    def close_partitions(self, state: str = "DOWN") -> None:
        """Stop starting jobs; with *state* DRAIN, also stop accepting jobs.

        ``open_partitions`` undoes the change.
        """
        for name in PARTITIONS:
            self.run("scontrol", "update", f"PartitionName={name}", f"State={state}")

    def open_partitions(self) -> None:
        self.close_partitions("UP")

    def drain_nodes(self, reason: str) -> None:
        """Stop starting jobs on the nodes; running jobs continue. ``resume_nodes`` undoes the change.

        *reason* is what Slurm shows to users.
        """
        self.run("scontrol", "update", f"NodeName={','.join(self.nodes)}", "State=DRAIN", f"Reason={reason}")

    def resume_nodes(self) -> None:
        """Resume all nodes; ignore nodes that are back in service already."""
        for node in self.nodes:
            done = self._client(["scontrol", "update", f"NodeName={node}", "State=RESUME"])
            if done.returncode != 0 and "Invalid node state" not in done.stderr:
                raise TestbedError(f"cannot resume {node}: {done.stderr.strip()}")

    def stop_controller(self) -> None:
        self._running.pop("slurmctld").close()

    def start_controller(self) -> None:
        """Start the controller, which continues from its saved state."""
        argv = [locate("slurmctld"), "-D"]
        port = self._ports["slurmctld"]
        self._start("slurmctld", argv, lambda: listens(self._options.address, port))

    def lose_node(self, name: str) -> None:
        """Set the node *name* DOWN in the controller, then kill the node with all its processes."""
        self.run("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=lost")
        self._running.pop(name).close()

    def start_node(self, name: str) -> None:
        port = self._ports[name]
        self._start(name, [locate("slurmd"), "-D", "-N", name], lambda: listens(self._options.address, port))

    def start(self) -> None:
        """Start all servers.

        Raises:
            MissingProgram: a program is not installed.
            NotServing: a server did not come up; the message has its output.
        """
        self._start("munged", _munged(self.directory), (self.directory / "munge" / "socket").is_socket)
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)

    def await_idle(self) -> None:
        """Wait until every node is idle. Raises NotServing if a node is not idle in time."""
        until = time.monotonic() + START_SECONDS
        while (states := self._client(_STATES).stdout.split()) != ["idle"] * len(self.nodes):
            if time.monotonic() > until:
                raise NotServing(f"the nodes of Slurm are not idle, but {' '.join(states) or 'unknown'}")
            time.sleep(_POLL_SECONDS)

    def _start(self, name: str, argv: Sequence[str], ready: Callable[[], bool]) -> None:
        argv = [*self._options.launcher, *argv]
        log = self.directory / f"{name}.log"
        self._running[name] = self._stack.enter_context(contextlib.ExitStack())
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
    """Run a cluster in a new *directory* until the context ends; initially all nodes are idle.

    The path of *directory* has at most about 80 bytes, because it contains a socket.

    Raises:
        MissingProgram: a program is not installed.
        NotServing: a server did not come up; the message has its output.
    """
    with contextlib.ExitStack() as stack:
        cluster = SlurmCluster(directory, options, stack)
        cluster.start()
        cluster.await_idle()
        yield cluster


def _munged(root: Path) -> list[str]:
    """Return the command of munged; with --force it accepts directories below the writable /tmp."""
    files = {"key": "munge.key", "socket": "munge/socket", "pid": "munge/pid", "seed": "munge/seed"}
    options = [f"--{name}-file={root / file}" for name, file in files.items() if name != "socket"]
    socket_and_log = [f"--socket={root / files['socket']}", f"--log-file={root / 'munged.log'}"]
    return [locate("munged"), "--foreground", "--force", "--num-threads=2", *socket_and_log, *options]


def _ports(options: SlurmOptions) -> dict[str, int]:
    """Return free ports by name: one for the controller and one for each node."""
    names = ["slurmctld", *(f"cn{number + 1}" for number in range(options.nodes))]
    ports: set[int] = set()
    while len(ports) < len(names):
        ports.add(free_port(options.address))
    return dict(zip(names, ports, strict=True))


def _configuration(root: Path, options: SlurmOptions, ports: Mapping[str, int]) -> str:
    hostname = options.hostname or socket.gethostname().partition(".")[0]
    values = {"root": root, "hostname": hostname, "address": options.address, "user": getpass.getuser()}
    host = f"NodeHostname={hostname} NodeAddr={options.address} CPUs={CPUS_OF_A_NODE}"
    nodes = {name: port for name, port in ports.items() if name != "slurmctld"}
    lines = [
        *options.lines,
        *(f"NodeName={name} Port={port} {host}" for name, port in nodes.items()),
        f"PartitionName=short Nodes={','.join(nodes)} Default=YES MaxTime=60",
        "PartitionName=long Nodes=cn1 MaxTime=INFINITE",
    ]
    return _CONFIGURATION.format(port=ports["slurmctld"], **values) + "\n".join(lines) + "\n"
