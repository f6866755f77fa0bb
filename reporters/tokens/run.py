"""Run a program that is limited by tokens, and learn what its processes did with the server."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reporters.guardian import PR_SET_PDEATHSIG, prctl
from reporters.tokens.server import TokensUnavailable

_PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_LABEL, _FLAGS = b"gridcast-tokens\0", 2  # of ``RunFlags`` in ``probes/kernels/iotokens.c``


@dataclass(frozen=True)
class LimitedRun:
    """The exit *status* of a program; whether a process of it asked for a token, or warned of the server."""

    status: int
    has_asked: bool
    has_warned: bool


def run_limited(program: Sequence[str], environment: Mapping[str, str]) -> LimitedRun:
    """Run *program* with *environment* to its end.

    Its processes share flags in a file that has no name, so it ends with them. They open it by ``/proc``, as
    many programs close the descriptors that they inherit.

    Raises:
        TokensUnavailable: the file cannot be written.
        OSError: *program* cannot be started.
    """
    try:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed below
        file.write(_LABEL + bytes(_FLAGS))
    except OSError as error:
        raise TokensUnavailable(f"cannot write a temporary file: {error.strerror}") from None
    with file:
        shared = {"GRIDCAST_TOKENS_RUN": f"/proc/{os.getpid()}/fd/{file.fileno()}"}
        status = _wait_for(program, {**environment, **shared})
        has_asked, has_warned = os.pread(file.fileno(), _FLAGS, len(_LABEL))
    return LimitedRun(status, bool(has_asked), bool(has_warned))


def _wait_for(program: Sequence[str], environment: Mapping[str, str]) -> int:
    """Return the exit status of *program*, which is killed if this process is.

    Signals that another process sends to this one are passed on; those of the terminal reach both anyway.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    awaited = {signal.SIGCHLD, *_PASSED_ON}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)

    def begin() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        process = subprocess.Popen(program, env=environment, close_fds=False, preexec_fn=begin)  # noqa: PLW1509 - no threads
        while process.poll() is None:
            received = signal.sigwaitinfo(awaited)
            if received.si_signo != signal.SIGCHLD and received.si_code <= 0:
                process.send_signal(received.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 128 - process.returncode if process.returncode < 0 else process.returncode
