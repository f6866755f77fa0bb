"""GRAM5, the Globus job service: globusrun submits every program as a job, in about three seconds each.

GRAM does not return the exit status of a job (the fork job manager does not know it). So the job is a small
shell script that runs the program and then reports on stderr how the program ended. The script is sent
encoded, because job managers differ in how they quote. The site reads a file of the reporter (by GASS) only
if the program has input.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probes.base import NoData, ProbeFailed
from probes.grid import Completed
from reporters import process
from reporters.base import (
    CannotConnect,
    ConnectionLost,
    Credential,
    CredentialUnfit,
    ResourceShell,
    TookTooLong,
)
from reporters.commandline import RUN_ENCODED, encoded
from reporters.credentials.proxy import ProxyCertificate
from reporters.error_lines import decisive_line, tail
from reporters.globus import explain

_CONNECT_SECONDS = 30.0
_CANCEL_SECONDS = 6.0  # the fork job manager takes five
_ARGUMENT_CHARACTERS = 20_000  # a gatekeeper accepts 64,000 for the whole request
_PASSED_ON = (
    "GLOBUS_HOSTNAME",
    "GLOBUS_TCP_PORT_RANGE",
    "HOME",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TZ",
    "USER",
)
# At the reporter. Stops the job at the end of its stdin: SIGTERM would end globusrun but not the job.
_CLIENT = """
exec 3<&0 < /dev/null
"$@" 3<&- & client=$!
{ read -r _ <&3; kill -INT "$client"; } 2> /dev/null &
exec 3<&-
wait "$client"
"""
# At the site. A job manager cancels a job by signalling its process group; timeout has a group of its own, so
# the script forwards SIGTERM. The marker line separates the program's output from that of start-up files.
_JOB = """
echo "$word"; echo "$word" >&2
now() { { read -r up _ < /proc/uptime && echo "$up"; } 2> /dev/null || date +%s; }
began=$(now)
exec 3<&0 4>&2 2> /dev/null
"$@" <&3 2>&4 3<&- 4>&- & program=$!
exec 3<&-
trap 'kill "$program"' TERM
while kill -0 "$program"; do wait "$program"; status=$?; done
printf '\\n%s %s %s %s\\n' "$word" "$status" "$began" "$(now)" >&4
"""
_FROM_INPUT = 'IFS= read -r job; eval "$(printf %s "$job" | base64 -d)"'
_FAILED = re.compile(
    r"GRAM (?:Job|Authentication test) (?:submission )?fail\w+(?: because|:) (?P<why>.*)", re.DOTALL
)
_IRRELEVANT = re.compile(r"\s*\(error code \d+\)\s*(Details:\s*)?$|\.\s+Possible reasons:.*")


@dataclass(frozen=True)
class RemoteExit:
    """The result of the job script: the program's stderr, exit status and duration in seconds."""

    stderr: str
    status: int
    seconds: float


class Shell(ResourceShell):
    """Runs programs at a site by GRAM5.

    Args:
        contact: the job manager, such as "ce.example.org:2119/jobmanager-fork:/O=Grid/CN=ce".
        directory: where programs run at the site (default: home).
        callback_host: name or address by which the site reaches the reporter (default: the reporter's host
            name).
        path: the PATH for globusrun.
        proxy_file: the proxy certificate (default: the path of Globus).
        ca_directory: the directory of authorities (default: the path of Globus).
    """

    interactive = False

    def __init__(
        self,
        resource: str,
        label: str,
        *,
        contact: str,
        directory: str | None = None,
        callback_host: str | None = None,
        path: str | None = None,
        proxy_file: str | None = None,
        ca_directory: str | None = None,
    ) -> None:
        super().__init__(resource, label)
        self._contact = contact
        self._directory = directory
        self._proxy = ProxyCertificate.of({"proxy_file": proxy_file, "ca_directory": ca_directory})
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        own = {"GLOBUS_HOSTNAME": callback_host, "PATH": path, "LC_GRIDCAST_RUN": label}
        given = {name: value for name, value in own.items() if value}
        self._environment = {**passed_on, **given, **self._proxy.environment}

    def credentials(self) -> Sequence[Credential]:
        return (self._proxy,)

    def connect(self, *, timeout_seconds: float) -> None:
        """Check that the site accepts the proxy; there is no persistent connection."""
        limit_seconds = min(timeout_seconds, _CONNECT_SECONDS)
        argv = ["globusrun", "-a", "-r", self._contact]
        try:
            done = process.run(
                argv, timeout_seconds=limit_seconds, env=self._environment, containment=self.containment
            )
        except process.TimedOut:
            raise self._cannot_connect(f"timed out after {limit_seconds:g} s", "") from None
        except process.ProcessError as error:
            raise self._cannot_connect(str(error), "") from None
        if done.returncode != 0 or "successful" not in done.stdout:
            raise self._refused(done.stderr or done.stdout)

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        word = f"gridcast-{uuid.uuid4().hex}"
        limit = math.ceil(timeout_seconds) + 2  # so that the local limit comes first
        script = self._script(word, ["timeout", "-k", "2", str(limit), *argv])
        try:
            with self._request(script, input or "") as request:
                done = self._globusrun(argv[0], request, timeout_seconds, marker=word)
        except process.ProcessError as error:
            raise ConnectionLost(f"{argv[0]} at {self.resource}: {error}", resource=self.resource) from None
        result = parse_exit(done.stderr, word)
        if result is None:
            raise self._lost(argv[0], done)
        return Completed(result.status, done.stdout, result.stderr, result.seconds)

    def start(self, argv: Sequence[str]) -> process.Running:
        """Raise NoData: a job has no input and output while it runs."""
        raise NoData(
            f"cannot start {argv[0]} in the background at {self.resource}: "
            "GRAM only runs programs to their end"
        )

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _script(self, word: str, argv: Sequence[str]) -> str:
        names = f"LC_GRIDCAST_RUN={shlex.quote(self.label)}; export LC_GRIDCAST_RUN; word={word}\n"
        return f"{names}set -- {shlex.join(argv)}\n{_JOB}"

    @contextlib.contextmanager
    def _request(self, script: str, input: str) -> Iterator[list[str]]:
        """Yield the arguments of globusrun for a job that runs *script* with *input*."""
        job = encoded(script)
        if not input and len(job) <= _ARGUMENT_CHARACTERS:
            yield ["-o", "-r", self._contact, self._description(["-c", RUN_ENCODED, job], "")]
            return
        with tempfile.TemporaryFile() as file:  # unnamed: a killed reporter leaves nothing
            file.write(f"{job}\n{input}".encode("utf-8", "replace"))
            file.flush()
            path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
            yield ["-s", "-r", self._contact, self._description(["-c", _FROM_INPUT], path)]

    def _description(self, arguments: Sequence[str], input_file: str) -> str:
        """Return the description of the job in GRAM's Resource Specification Language."""
        gass = "$(GLOBUSRUN_GASS_URL) # "
        relations = {
            "executable": _quoted("/bin/sh"),
            "arguments": " ".join(_quoted(argument) for argument in arguments),
            "stdout": gass + _quoted("/dev/stdout"),
            "stderr": gass + _quoted("/dev/stderr"),
            **({"stdin": gass + _quoted(input_file)} if input_file else {}),
            **({"directory": _quoted(self._directory)} if self._directory else {}),
        }
        return "&" + "".join(f"({name}={value})" for name, value in relations.items())

    def _globusrun(self, program: str, request: list[str], limit_seconds: float, *, marker: str) -> Completed:
        client = ["/bin/sh", "-c", _CLIENT, "sh", "globusrun", *request]
        with process.start(
            client, env=self._environment, marker=marker, containment=self.containment
        ) as running:
            running.wait_for_output(lambda _: False, limit_seconds)
            done = running.poll()
            if done is not None:
                return done
            running.close_input()
            running.wait_for_output(lambda _: False, _CANCEL_SECONDS)
        raise TookTooLong(
            f"{program} at {self.resource} ran longer than {limit_seconds:g} s and was stopped",
            resource=self.resource,
        )

    def _lost(self, program: str, done: Completed) -> ProbeFailed:
        """Return the error for a job that did not report its end."""
        explained = explain(done.stderr)
        if explained is not None and explained.error is CredentialUnfit:
            return CredentialUnfit(explained.text, stderr_tail=tail(done.stderr))
        reason = (
            explained.text if explained else parse_failure(done.stderr) or "the job did not report its end"
        )
        return ConnectionLost(
            f"{program} at {self.resource} was lost: {reason}",
            resource=self.resource,
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )

    def _refused(self, text: str) -> ProbeFailed:
        explained = explain(text)
        if explained is not None and explained.error is CredentialUnfit:
            return CredentialUnfit(explained.text, stderr_tail=tail(text))
        return self._cannot_connect(explained.text if explained else parse_failure(text), text)

    def _cannot_connect(self, reason: str, stderr: str) -> CannotConnect:
        where = self._contact.partition(":/")[0]
        return CannotConnect(
            f"cannot connect to {where}: {reason}", resource=self.resource, stderr_tail=tail(stderr)
        )


def parse_exit(stderr: str, word: str) -> RemoteExit | None:
    """Return how the program ended; None if the job has not reported the end.

    The report is on *stderr* after the marker *word*.
    """
    match = re.search(rf"\n{word} (?P<status>\d+) (?P<began>[\d.]+) (?P<ended>[\d.]+)\n", stderr)
    if match is None:
        return None
    seconds = float(match["ended"]) - float(match["began"])
    return RemoteExit(stderr[: match.start()], int(match["status"]), seconds)


def parse_failure(text: str) -> str:
    """Return the reason that globusrun gives in *text* for a failed job or submission."""
    match = _FAILED.search(text)
    return _IRRELEVANT.sub("", match["why"]).strip() if match else decisive_line(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
