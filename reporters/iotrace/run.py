"""Run a program and record its I/O calls: by a preloaded library, or by strace if it is static."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reporters.compiled import CannotCompile
from reporters.iotrace import strace
from reporters.iotrace.records import merge
from reporters.preloaded import preloaded, unreachable, user_cache

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CannotTrace(Exception):
    """The program cannot be traced; the message has the reason."""


@dataclass(frozen=True)
class TraceOptions:
    """What is recorded.

    Attributes:
        areas: directories of the files; without any, all files but the system's.
        programs: names of the programs; without any, all.
        limit_bytes: for the trace of one process.
    """

    areas: Sequence[Path] = ()
    programs: Sequence[str] = ()
    limit_bytes: int = 64 << 20


def limitation(program: str) -> tuple[str, str]:
    """Return the source of a trace of *program*, "" if there is none, and why it is not "trace" in a line."""
    reason = unreachable(program)
    if not reason:
        return "trace", ""
    refusal = strace.refusal(program)
    if refusal:
        return "", f"{program} runs untraced: {reason}, and {refusal}"
    return "strace", f"{program} is traced by strace, as {reason}: each call takes about 70 us longer"


def run_traced(program: Sequence[str], target: Path, options: TraceOptions, source: str = "trace") -> int:
    """Run *program*, write its trace to *target*, and return its exit status.

    Without a *source*, the trace has no calls.

    Raises:
        CannotTrace: it cannot be started or traced, or the trace cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".iotrace-", dir=target.absolute().parent) as directory:
            parts = Path(directory)
            if source == "strace":
                status = strace.run(program, parts, options.areas, _run)
            else:
                status = _run(program, _environment(parts, options) if source else os.environ)
            metadata = {"memory_bytes": memory_bytes(), "source": source or "strace"}
            _write(sorted(parts.glob("*.part")), target, metadata)
            return status
    except CannotCompile as error:
        raise CannotTrace(str(error)) from None
    except OSError as error:
        raise CannotTrace(f"cannot write {target}: {error.strerror}") from None


def _write(parts: Sequence[Path], target: Path, metadata: Mapping[str, Any]) -> None:
    """Write *target* as a whole or not at all."""
    unfinished = parts[0].with_name("trace") if parts else target
    merge(parts, unfinished, {**metadata})
    if parts:
        unfinished.replace(target)


def _environment(directory: Path, options: TraceOptions) -> dict[str, str]:
    libraries = [str(preloaded(user_cache(), "iotrace")), *filter(None, [os.environ.get("LD_PRELOAD")])]
    return {
        **os.environ,
        "LD_PRELOAD": ":".join(libraries),
        "GRIDCAST_IOTRACE": str(directory.resolve()),
        "GRIDCAST_IOTRACE_SALT": str(secrets.randbits(63)),
        "GRIDCAST_IOTRACE_AREAS": ":".join(str(area.resolve()) for area in options.areas),
        "GRIDCAST_IOTRACE_ONLY": ":".join(options.programs),
        "GRIDCAST_IOTRACE_BYTES": str(options.limit_bytes),
    }


def _run(program: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run *program* to its end and return its status. Signals for this process are passed on."""
    try:
        process = subprocess.Popen(program, env=environment)
    except OSError as error:
        raise CannotTrace(f"cannot run {program[0]}: {error.strerror}") from None
    with _passing_signals_to(process):
        status = process.wait()
    return 128 - status if status < 0 else status


@contextlib.contextmanager
def _passing_signals_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def memory_bytes() -> int:
    """Return the size of this host's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
