"""``iotrace``: record the I/O calls of a program, and make a signature that the probe ``replay`` plays."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import probes
from probes.base import InvalidParameters, UnknownProbe, checked_parameters
from probes.common.signature import BadSignature, digest
from reporters.iotrace import darshan_log, show
from reporters.iotrace.build import build
from reporters.iotrace.calls import BadTrace, IoTrace
from reporters.iotrace.records import TraceFile
from reporters.iotrace.run import CannotTrace, TraceOptions, limitation, run_traced
from reporters.preloaded import unreachable
from reporters.remote import local_run
from reporters.remote.errors import UsageFault

_LEFT_OUT = ("trace", "wall_seconds")  # of the parameters that tell an application apart


class Command:
    summary = "Record the I/O calls of a program, and make a signature that can be replayed elsewhere."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        _add_run(actions.add_parser("run", help="run a program and record its I/O calls"))
        shown = actions.add_parser(
            "show", help="show the calls, bytes and seconds of each operation of a trace"
        )
        shown.add_argument("file", type=Path)
        made = actions.add_parser("signature", help="make the signature of a trace, or of a Darshan log")
        made.add_argument("file", type=Path)
        made.add_argument("-o", "--output", type=Path, help="default: standard output")
        made.add_argument("--application", metavar="PROBE", help="the probe that was traced")
        made.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="its parameters; may be repeated"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        try:
            return {"run": _run, "show": _show, "signature": _signature}[options.action](options)
        except (CannotTrace, BadTrace, BadSignature) as error:
            raise UsageFault(str(error)) from None


def _add_run(parser: argparse.ArgumentParser) -> None:
    defaults = TraceOptions()
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the trace")
    parser.add_argument(
        "--area",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="record only files below it; may be repeated (default: all files but the system's)",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="record only programs called so, such as the one that mpirun starts; may be repeated",
    )
    parser.add_argument(
        "--limit-bytes",
        type=int,
        default=defaults.limit_bytes,
        help="of the trace of one process, 64 bytes a call; later calls are counted (%(default)s)",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...")


def _run(options: argparse.Namespace) -> int:
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise UsageFault("give the program to run: iotrace run -o FILE -- PROGRAM ...")
    source, line = limitation(program[0])
    if line:
        _warn(line)
    wanted = TraceOptions(options.area, options.only, options.limit_bytes)
    status = run_traced(program, options.output, wanted, source)
    trace = TraceFile(options.output)
    _warn(f"{options.output}: {trace.summary}{'' if line else _unseen(program, bool(trace.parts))}")
    return status


def _unseen(program: Sequence[str], has_processes: bool) -> str:
    """Return which programs of the command are not seen; if no process was recorded, which kinds are not."""
    for word in program[1:]:
        reason = unreachable(word)
        if reason:
            return f"; {word} is not seen: {reason}"
    if has_processes:
        return ""
    return "; static programs, those that change their user, and those with another loader are not seen"


def _show(options: argparse.Namespace) -> int:
    trace = TraceFile(options.file)
    sys.stdout.write(f"{trace.summary}\n")
    for line in show.lines([part.counters for part in trace.parts]):
        sys.stdout.write(f"{line}\n")
    return 0


def _signature(options: argparse.Namespace) -> int:
    trace = _read(options.file)
    application = _application(options)
    try:
        text = build(trace, application)
    except BadTrace as error:
        raise BadTrace(f"{options.file}: {error}") from None
    for warning in trace.warnings:
        _warn(f"{options.file}: {warning}")
    if options.output is None:
        sys.stdout.write(text)
        return 0
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageFault(f"cannot write {options.output}: {error.strerror}") from None
    _warn(f"{options.output}: signature {digest(text)}, {len(text):,} bytes")
    return 0


def _read(path: Path) -> IoTrace:
    return darshan_log.read(path) if darshan_log.is_log(path) else TraceFile(path).trace()


def _application(options: argparse.Namespace) -> Mapping[str, Any] | None:
    """Return the probe and its parameters, complete, as a signature names them."""
    if options.application is None:
        if options.set:
            raise UsageFault("--set: these are parameters of a probe, give --application as well")
        return None
    try:
        probe = probes.load(options.application)
        parameters = checked_parameters(probe, local_run.parameters(probe, options.set))
    except (UnknownProbe, InvalidParameters) as error:
        raise UsageFault(str(error)) from None
    kept = {name: value for name, value in parameters.items() if name not in _LEFT_OUT}
    return {"probe": options.application, "parameters": kept}


def _warn(text: str) -> None:
    sys.stderr.write(f"gridcast iotrace: {text}\n")
