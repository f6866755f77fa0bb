"""Run programs by the OpenSSH client. ~/.ssh/config applies (ProxyJump, certificates, hardware keys).

There is one connection for each resource: a master process logs in, and every program is a session over the
master's control socket, without another login. ssh never prompts (BatchMode) and never accepts an unknown
host key (StrictHostKeyChecking), not even of a jump host, whatever ~/.ssh/config says.
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
from reporters.credentials.files import exists
from reporters.credentials.ssh_configuration import parse_configuration
from reporters.credentials.ssh_key import SshKey
from reporters.error_lines import decisive_line, tail
from reporters.path_chain import unsafe_reason

# A stalled connection is detected after the product of these.
SERVER_ALIVE_SECONDS = 5
SERVER_ALIVE_COUNT = 3

_DEFAULT_CONFIGURATIONS = ["~/.ssh/config", "/etc/ssh/ssh_config"]
_SSH_FAILED = 255
_SOCKET_CHARACTERS = 60  # a socket's path is limited to 107 bytes, and ssh appends a suffix
_LOST_WITHIN_SECONDS = 2.0
# Executes the master. The master's stdin, which it never reads, is the writing end of a pipe. A second
# process reads the pipe and removes the directory when the master has ended, even if the reporter was killed.
_MASTER = """
mkfifo "$1/ends" && exec 3<> "$1/ends" || exit 1
{ trap '' TERM; cat; rm -rf "$1"; } < "$1/ends" > /dev/null 2>&1 3>&- &
shift
exec "$@" <&3 3>&-
"""
# Separates the program's output from text of the login: start-up files, modules, quotas.
_MARKER = "gridcast: the program begins"
# A shell between sshd and the program: a program killed by signal n has exit status 128 + n, where ssh would
# return 255, and a last line of stderr tells a program's own status 255 from ssh's. The limit applies at the
# site as well, because stopping ssh at the reporter does not stop the program.
_RUN = 'timeout -k 2 "$@"; status=$?; [ "$status" -ne 255 ] || echo "$0" >&2; exit "$status"'
_OWN_255 = "gridcast: the exit status 255 is the program's own"
_HOPS = re.compile(r"(?!-)[\w.:@\[\]/-]+(,(?!-)[\w.:@\[\]/-]+)*", re.ASCII)
# Unsafe in a host or user name for ssh, and for a shell that runs a ProxyCommand.
_UNSAFE_NAME = re.compile(r"^-|[\s'\"`;&<>|(){}]")
_PREFIX = re.compile(r"^ssh: (connect to host \S+ port \d+: )?")


class Shell(ResourceShell):
    """Runs programs at a site by ssh.

    Args:
        host: host name, or an alias in *config_file*.
        identity_file: ssh uses only the key in this file and no other key of the agent.
        jump: the jump hosts, separated by commas.
        connect_timeout_seconds: limit of the wait for the server's banner.
        login_timeout_seconds: limit of the whole login.
        keep_alive_seconds: the connection is lost if the server does not answer for three times this time.
        forward_agent: whether programs at the site may use the reporter's agent.
        sessions: number of concurrent programs on the connection, including background jobs; servers allow
            ten (MaxSessions).
    """

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
        _check_names(resource, host, user, jump)
        if min(sessions, connect_timeout_seconds, login_timeout_seconds, keep_alive_seconds) <= 0:
            raise InvalidParameters(
                f"resource {resource}: shell 'ssh': sessions and seconds must be greater than 0"
            )
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
        return (SshKey(self.resource, self._user_arguments(), identity_file=self._identity_file),)

    def connect(self, *, timeout_seconds: float) -> None:
        with self._lock:
            if self._master is not None and _result(self._master) is None:
                return
            self._master = self._start_master()
            self._await_login(self._master, min(timeout_seconds, self._login_timeout_seconds))

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        self._raise_if_lost()
        limit = math.ceil(timeout_seconds) + 2  # so that the local limit comes first
        command = self._session(_RUN, _OWN_255, str(limit), *argv)
        try:
            with self._session_slot(argv[0], timeout_seconds) as left_seconds:
                done = process.run(
                    command,
                    timeout_seconds=left_seconds,
                    input=input,
                    guarded=False,
                    marker=_MARKER,
                    containment=self.containment,
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
        return done if done.returncode != _SSH_FAILED else self._own_status_255(done)

    def start(self, argv: Sequence[str]) -> process.Running:
        self._raise_if_lost()
        command = self._session('exec "$@"', "sh", *argv)
        running = process.start(command, guarded=False, marker=_MARKER, containment=self.containment)
        self._started.append(running)
        return running

    def close(self) -> None:
        while self._started:
            self._started.pop().stop()
        with self._lock:
            if self._master is not None:
                self._master.stop()

    @contextlib.contextmanager
    def _session_slot(self, program: str, timeout_seconds: float) -> Iterator[float]:
        """Occupy one session of the connection in this context; yield the rest of *timeout_seconds*.

        Raises:
            TookTooLong: no session became free in time. *program* names the program in the message.
        """
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
        if self._config_file and not exists(Path(self._config_file)):
            raise self._cannot_connect(f"there is no {self._config_file}", "")
        try:
            place = _short_directory()
            if reason := unsafe_reason(Path(place)):  # ssh executes what the file of configuration says
                raise self._cannot_connect(f"temporary files at the reporter: {reason}", "")
            directory = tempfile.mkdtemp(prefix="gridcast-", dir=place)
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
        command = ["sh", "-c", _MASTER, "sh", directory, *ssh, *self._target]
        return process.start(command, containment=self.containment)

    def _configuration(self) -> str:
        """Return the text of an ssh configuration file that includes the user's configuration.

        Required options come first, since ssh uses the first value of an option. They are in a file because
        the ssh for a jump host gets the name of the configuration file, but no options of the command line.
        """
        required = {
            **host_key_options(),
            "BatchMode": "yes",
            "ConnectTimeout": str(math.ceil(self._connect_timeout_seconds)),
            "ConnectionAttempts": "1",
            "ServerAliveInterval": str(math.ceil(self._keep_alive_seconds)),
            "ServerAliveCountMax": str(SERVER_ALIVE_COUNT),
        }
        included = [str(Path(self._config_file).absolute())] if self._config_file else _DEFAULT_CONFIGURATIONS
        lines = [f"{name} {value}" for name, value in required.items()]
        return "\n".join([*lines, *(f'Include "{glob.escape(file)}"' for file in included), ""])

    def _user_arguments(self) -> list[str]:
        """Return the arguments of an ssh command that uses only the user's configuration."""
        return [*(["-F", self._config_file] if self._config_file else []), *self._target]

    def _await_login(self, master: process.Running, limit_seconds: float) -> None:
        """Wait for the control socket, which ssh creates after the login. Raises CannotConnect without it."""
        began = time.monotonic()
        while not self._socket.exists():
            waited_seconds = time.monotonic() - began
            done = _result(master)
            if done is not None:
                raise self._cannot_connect(_reason(done, waited_seconds), done.stderr)
            if waited_seconds > limit_seconds:
                master.stop()
                raise self._cannot_connect(f"timed out after {limit_seconds:g} s", "")
            master.wait_for_output(lambda _: self._socket.exists(), 0.02)

    def _cannot_connect(self, reason: str, stderr: str) -> CannotConnect:
        return CannotConnect(
            f"cannot connect to {self._address()}: {reason}", resource=self.resource, stderr_tail=tail(stderr)
        )

    def _address(self) -> str:
        """Return host:port according to ssh's configuration, for messages; the host if unknown."""
        try:
            done = process.run(["ssh", "-G", *self._user_arguments()], timeout_seconds=10.0)
        except process.ProcessError:
            return self._host
        return parse_address(done.stdout) or self._host

    def _session(self, script: str, *words: str) -> list[str]:
        """Return the ssh command that runs *script* at the site, with *words* as its $0, $1, ..."""
        # No configuration file, which the master has read. ProxyCommand=false prevents a second login if the
        # master is gone. A session ends with the master, so it needs no guardian.
        options = as_options(ControlMaster="no", ProxyCommand="false")
        ssh = ["ssh", "-F", "none", "-T", "-S", str(self._socket), *options, *self._options]
        print_marker = f'echo "{_MARKER}"; echo "{_MARKER}" >&2; '
        return [*ssh, "--", self._host, for_any_shell(["sh", "-c", print_marker + script, *words])]

    def _raise_if_lost(self) -> None:
        done = None if self._master is None else _result(self._master)
        if self._master is None:
            raise ConnectionLost(f"{self.resource} is not connected", resource=self.resource)
        if done is not None:
            raise ConnectionLost(
                f"the connection to {self._address()} was lost: {decisive_line(done.stderr) or 'ssh ended'}",
                resource=self.resource,
                stderr_tail=tail(done.stderr),
            )

    def _own_status_255(self, done: Completed) -> Completed:
        """Return the result of a session with exit status 255 if the program had this status, not ssh.

        Raises:
            ConnectionLost: 255 is the status of ssh, whose connection ended.
        """
        if done.stderr.endswith(f"{_OWN_255}\n"):
            return replace(done, stderr=done.stderr[: -len(_OWN_255) - 1])
        if self._master is not None:
            self._master.wait_for_output(
                lambda _: False, _LOST_WITHIN_SECONDS
            )  # the master may be about to end
        self._raise_if_lost()
        reason = decisive_line(done.stderr)
        what = f"refused a session: {reason}" if reason else "ended a session without an exit status"
        raise ConnectionLost(
            f"{self._address()} {what}",
            resource=self.resource,
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )


def _check_names(resource: str, host: str, user: str | None, jump: str | None) -> None:
    """Raise InvalidParameters for names that are unsafe on a command line."""
    if jump is not None and not _HOPS.fullmatch(jump):
        raise InvalidParameters(
            f"resource {resource}: shell 'ssh': expected a list of jump hosts, got {jump!r}"
        )
    for name in (host, *([user] if user else [])):
        if not name or _UNSAFE_NAME.search(name):
            raise InvalidParameters(
                f"resource {resource}: shell 'ssh': expected a host or a user, got {name!r}"
            )


def _result(master: process.Running) -> Completed | None:
    """Return the result of the master process, even if it was killed; None while it runs."""
    try:
        return master.poll()
    except process.ProcessError as error:
        return Completed(128 + signal.SIGKILL, "", f"{error}\n", 0.0)


def parse_address(text: str) -> str:
    """Return host:port from the output of ``ssh -G``; empty if the output has no host or port."""
    shown = parse_configuration(text)
    host, port = shown.first("hostname"), shown.first("port")
    return f"{host}:{port}" if host and port else ""


def _reason(done: Completed, waited_seconds: float) -> str:
    """Return why ssh did not log in, without the host and port, which the message names."""
    line = decisive_line(done.stderr)
    if re.search("timed out|timeout", line, re.IGNORECASE):
        return f"timed out after {waited_seconds:.0f} s"
    return _PREFIX.sub("", line) or f"ssh ended with exit status {done.returncode}"


def host_key_options() -> dict[str, str]:
    """Return the options that require a known host key."""
    return {"StrictHostKeyChecking": "yes", "NoHostAuthenticationForLocalhost": "no"}


def as_options(**values: str) -> list[str]:
    """Return *values* as arguments ``-o NAME=VALUE`` of ssh and scp."""
    return [word for name, value in values.items() for word in ("-o", f"{name}={value}")]


def _short_directory() -> str:
    default = tempfile.gettempdir()
    return default if len(default) <= _SOCKET_CHARACTERS else "/tmp"  # noqa: S108  # mkdtemp makes it private
