"""The OpenSSH client: what ~/.ssh/config says (ProxyJump, certificates, hardware keys ...) just works.

One connection a resource: a master process logs in and keeps it, every program is a session through its
control socket, so that a command costs no login. Nothing is ever asked (BatchMode), and a host whose key is
not known is never trusted (StrictHostKeyChecking), on the way neither, whatever ~/.ssh/config says.
"""

from __future__ import annotations

import contextlib
import glob
import math
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from probes.base import InvalidParameters
from probes.grid import Completed
from reporters import process
from reporters.base import CannotConnect, ConnectionLost, Credential, ResourceShell, TookTooLong
from reporters.commandline import for_any_shell
from reporters.credentials.files import is_there
from reporters.credentials.ssh_key import SshKey
from reporters.error_lines import decisive_line, tail

# A stalled link is noticed after the product of these.
SERVER_ALIVE_SECONDS = 5
SERVER_ALIVE_COUNT = 3

_USUAL_CONFIGURATIONS = ["~/.ssh/config", "/etc/ssh/ssh_config"]
_SSH_FAILED = 255
_SOCKET_CHARACTERS = 60  # a socket's path has 107 bytes, and ssh appends a suffix of its own
_LOST_WITHIN_SECONDS = 0.5
# Turns into the master. Its stdin, which it keeps and never reads, is the writing end of a pipe to a process
# that removes the directory when the master has ended, however that came: all others may be dead by then.
_MASTER = """
mkfifo "$1/ends" && exec 3<> "$1/ends" || exit 1
{ trap '' TERM; cat; rm -rf "$1"; } < "$1/ends" > /dev/null 2>&1 3>&- &
shift
exec "$@" <&3 3>&-
"""
# What a login says before a program does (start-up files, modules, quotas) is no output of the program.
_MARKER = "gridcast: the program begins"
# A shell between sshd and the program: one that a signal killed then has an exit status (128 + n), where ssh
# would say 255; and one that says 255 itself is told from ssh by a last line of stderr. The program has the
# same limit at the site: stopping ssh here does not stop it there.
_TO_ITS_END = 'timeout -k 2 "$@"; status=$?; [ "$status" -ne 255 ] || echo "$0" >&2; exit "$status"'
_ITS_OWN = "gridcast: the exit status 255 is the program's own"
_HOPS = re.compile(r"(?!-)[\w.:@\[\]/-]+(,(?!-)[\w.:@\[\]/-]+)*", re.ASCII)
# Neither may say more than a name to ssh, or to a shell to which its configuration hands it (ProxyCommand).
_NO_NAME = re.compile(r"^-|[\s'\"`;&<>|(){}]")
_PREFIX = re.compile(r"^ssh: (connect to host \S+ port \d+: )?")


class Shell(ResourceShell):
    """Options: as for ssh; *host* may be an alias in *config_file*, *jump* is one host or several on the way.
    With *identity_file* that key is used, and no other of the agent's. *connect_timeout_seconds* is for the
    server's first words, *login_timeout_seconds* for the whole login; a server that says nothing for three
    times *keep_alive_seconds* is lost. *forward_agent* lets programs at the site use the reporter's agent.
    *sessions* is how many programs may run at once over the connection: servers allow ten (MaxSessions), and
    a job that runs in the background has one too."""

    def __init__(
        self,
        resource: str,
        label: str,
        *,
        host: str,
        config_file: str | None = None,
        user: str | None = None,
        port: int | None = None,
        identity_file: str | None = None,
        jump: str | None = None,
        connect_timeout_seconds: float = 10.0,
        login_timeout_seconds: float = 60.0,
        keep_alive_seconds: float = SERVER_ALIVE_SECONDS,
        forward_agent: bool = False,
        sessions: int = 8,
    ) -> None:
        super().__init__(resource, label)
        if jump is not None and not _HOPS.fullmatch(jump):
            raise InvalidParameters(f"resource {resource}: shell 'ssh': {jump!r} names no hosts to jump over")
        for name in (host, *([user] if user else [])):
            if not name or _NO_NAME.search(name):
                raise InvalidParameters(f"resource {resource}: shell 'ssh': {name!r} is no host or user")
        if min(sessions, connect_timeout_seconds, login_timeout_seconds, keep_alive_seconds) <= 0:
            raise InvalidParameters(f"resource {resource}: shell 'ssh': sessions and seconds are over 0")
        self._host = host
        self._config_file = config_file
        self._identity_file = identity_file
        self._connect_timeout_seconds = connect_timeout_seconds
        self._login_timeout_seconds = login_timeout_seconds
        self._keep_alive_seconds = keep_alive_seconds
        self._target = [
            *(["-l", user] if user else []),
            *(["-p", str(port)] if port else []),
            *(["-i", identity_file, *as_options(IdentitiesOnly="yes")] if identity_file else []),
            *(["-J", jump] if jump else []),
            "--",
            host,
        ]
        self._options = as_options(
            BatchMode="yes",
            SetEnv=f"LC_GRIDCAST_RUN={label}",
            ForwardAgent="yes" if forward_agent else "no",
            LogLevel="INFO",
        )
        self._lock = threading.Lock()
        self._free_sessions = threading.BoundedSemaphore(sessions)
        self._socket = Path()
        self._master: process.Running | None = None
        self._started: list[process.Running] = []

    def credentials(self) -> Sequence[Credential]:
        return (SshKey(self.resource, self._as_configured(), identity_file=self._identity_file),)

    def connect(self, *, timeout_seconds: float) -> None:
        with self._lock:
            if self._master is not None and _came_of(self._master) is None:
                return
            self._master = self._start_master()
            self._await_login(self._master, min(timeout_seconds, self._login_timeout_seconds))

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        self._raise_if_lost()
        limit = math.ceil(timeout_seconds) + 2  # the limit here comes first, and says so
        command = self._session(_TO_ITS_END, _ITS_OWN, str(limit), *argv)
        try:
            with self._a_session(argv[0], timeout_seconds) as left_seconds:
                done = process.run(
                    command, timeout_seconds=left_seconds, input=input, guarded=False, marker=_MARKER
                )
        except process.TimedOut as error:
            self._raise_if_lost()
            raise TookTooLong(
                f"{argv[0]} at {self.resource} ran longer than {timeout_seconds:g} s and was stopped",
                resource=self.resource,
                stderr_tail=tail(error.partial.stderr),
            ) from None
        except process.ProcessError as error:
            raise ConnectionLost(f"{argv[0]} at {self.resource}: {error}", resource=self.resource) from None
        return done if done.returncode != _SSH_FAILED else self._told_apart(done)

    def start(self, argv: Sequence[str]) -> process.Running:
        self._raise_if_lost()
        running = process.start(self._session('exec "$@"', "sh", *argv), guarded=False, marker=_MARKER)
        self._started.append(running)
        return running

    def close(self) -> None:
        while self._started:
            self._started.pop().stop()
        with self._lock:
            if self._master is not None:
                self._master.stop()

    @contextlib.contextmanager
    def _a_session(self, program: str, timeout_seconds: float) -> Iterator[float]:
        """Have one of the sessions; what is left of the time then. Raises TookTooLong."""
        until = time.monotonic() + timeout_seconds
        if not self._free_sessions.acquire(timeout=min(timeout_seconds, threading.TIMEOUT_MAX)):
            raise TookTooLong(
                f"{program} at {self.resource} waited {timeout_seconds:g} s for a session of the connection",
                resource=self.resource,
            )
        try:
            yield until - time.monotonic()
        finally:
            self._free_sessions.release()

    def _start_master(self) -> process.Running:
        if self._config_file and not is_there(Path(self._config_file)):
            raise self._cannot_connect(f"there is no {self._config_file}", "")
        try:
            directory = tempfile.mkdtemp(prefix="gridcast-", dir=_short_directory())
        except OSError as error:
            raise self._cannot_connect(f"{error.filename} at the reporter: {error.strerror}", "") from None
        self._socket = Path(directory, "master")
        config = Path(directory, "config")
        try:
            config.write_text(self._configuration(), encoding="utf-8")
        except OSError as error:
            shutil.rmtree(directory, ignore_errors=True)
            raise self._cannot_connect(f"{config} at the reporter: {error.strerror}", "") from None
        options = as_options(ControlPersist="no", ClearAllForwardings="yes", RemoteCommand="none")
        ssh = ["ssh", "-F", str(config), "-M", "-N", "-T", "-S", str(self._socket), *options, *self._options]
        return process.start(["sh", "-c", _MASTER, "sh", directory, *ssh, *self._target])

    def _configuration(self) -> str:
        """Ours first, for ssh takes the first value that it finds, then what the user has configured.

        As a file, for options are not handed on to the hosts to jump over, and the name of the file is.
        """
        ours = {
            **host_is_checked(),
            "BatchMode": "yes",
            "ConnectTimeout": str(math.ceil(self._connect_timeout_seconds)),
            "ConnectionAttempts": "1",
            "ServerAliveInterval": str(math.ceil(self._keep_alive_seconds)),
            "ServerAliveCountMax": str(SERVER_ALIVE_COUNT),
        }
        theirs = [str(Path(self._config_file).absolute())] if self._config_file else _USUAL_CONFIGURATIONS
        lines = [f"{name} {value}" for name, value in ours.items()]
        return "\n".join([*lines, *(f'Include "{glob.escape(file)}"' for file in theirs), ""])

    def _as_configured(self) -> list[str]:
        """The arguments of an ssh that is told nothing by us."""
        return [*(["-F", self._config_file] if self._config_file else []), *self._target]

    def _await_login(self, master: process.Running, limit_seconds: float) -> None:
        """Until the control socket is there: ssh makes it when it is logged in."""
        began = time.monotonic()
        while not self._socket.exists():
            waited_seconds = time.monotonic() - began
            done = _came_of(master)
            if done is not None:
                raise self._cannot_connect(_reason(done, waited_seconds), done.stderr)
            if waited_seconds > limit_seconds:
                master.stop()
                raise self._cannot_connect(f"timed out after {limit_seconds:g} s", "")
            master.wait_for_output(lambda _: self._socket.exists(), 0.02)

    def _cannot_connect(self, reason: str, stderr: str) -> CannotConnect:
        return CannotConnect(
            f"cannot connect to {self._where()}: {reason}", resource=self.resource, stderr_tail=tail(stderr)
        )

    def _where(self) -> str:
        """host:port as ssh understands its configuration."""
        try:
            known = process.run(["ssh", "-G", *self._as_configured()], timeout_seconds=10.0)
        except process.ProcessError:
            return self._host
        return parse_address(known.stdout) or self._host

    def _session(self, script: str, *words: str) -> list[str]:
        """The ssh that runs *script* at the site, with *words* as its $0, $1, ..."""
        # No configuration file: the master has read it. Without the master there must be no second login. A
        # session ends with the master, so that it needs no guardian of its own.
        options = as_options(ControlMaster="no", ProxyCommand="false")
        ssh = ["ssh", "-F", "none", "-T", "-S", str(self._socket), *options, *self._options]
        begins = f'echo "{_MARKER}"; echo "{_MARKER}" >&2; '
        return [*ssh, "--", self._host, for_any_shell(["sh", "-c", begins + script, *words])]

    def _raise_if_lost(self) -> None:
        done = None if self._master is None else _came_of(self._master)
        if self._master is None:
            raise ConnectionLost(f"{self.resource} is not connected", resource=self.resource)
        if done is not None:
            raise ConnectionLost(
                f"the connection to {self._where()} was lost: {decisive_line(done.stderr) or 'ssh ended'}",
                resource=self.resource,
                stderr_tail=tail(done.stderr),
            )

    def _told_apart(self, done: Completed) -> Completed:
        """Tell a program's own exit status 255 from ssh's. Raises ConnectionLost for the latter."""
        if done.stderr.endswith(f"{_ITS_OWN}\n"):
            return replace(done, stderr=done.stderr[: -len(_ITS_OWN) - 1])
        if self._master is not None:
            self._master.wait_for_output(lambda _: False, _LOST_WITHIN_SECONDS)  # it may be about to end
        self._raise_if_lost()
        raise ConnectionLost(
            f"{self._where()} refused a session: {decisive_line(done.stderr) or 'ssh failed'}",
            resource=self.resource,
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )


def _came_of(master: process.Running) -> Completed | None:
    """What came of the connection's process; None while it lives. One that was killed has said so."""
    try:
        return master.poll()
    except process.ProcessError as error:
        return Completed(128 + signal.SIGKILL, "", f"{error}\n", 0.0)


def parse_address(text: str) -> str:
    """host:port from the output of ``ssh -G``; empty where it has none."""
    values = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    return f"{values['hostname']}:{values['port']}" if {"hostname", "port"} <= values.keys() else ""


def _reason(done: Completed, waited_seconds: float) -> str:
    """Why ssh did not log in, without what the message says anyway."""
    line = decisive_line(done.stderr)
    if re.search("timed out|timeout", line, re.IGNORECASE):
        return f"timed out after {waited_seconds:.0f} s"
    return _PREFIX.sub("", line) or f"ssh ended with exit status {done.returncode}"


def host_is_checked() -> dict[str, str]:
    """Options with which a host must be known by its key."""
    return {"StrictHostKeyChecking": "yes", "NoHostAuthenticationForLocalhost": "no"}


def as_options(**values: str) -> list[str]:
    """Options of ssh and scp, each as ``-o NAME=VALUE``."""
    return [word for name, value in values.items() for word in ("-o", f"{name}={value}")]


def _short_directory() -> str:
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _SOCKET_CHARACTERS else "/tmp"  # noqa: S108  # mkdtemp makes it private
