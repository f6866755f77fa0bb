"""``tokens``: limit how many processes read and write a storage area at once."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reporters.path_chain import unsafe_reason
from reporters.preloaded import unreachable, user_cache
from reporters.remote.errors import UsageFault
from reporters.tokens import server
from reporters.tokens.library import library
from reporters.tokens.limits import BadVerdict, TokenLimits, from_sweep
from reporters.tokens.run import run_limited
from reporters.tokens.server import Area, TokensUnavailable

_LONGEST_LINGER = 3600  # seconds
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class Command:
    summary = "Limit how many processes read and write a storage area at once."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        _add_serve(actions.add_parser("serve", help="grant the tokens of a storage area, until SIGTERM"))
        run = actions.add_parser("run", help="run a program, limited by tokens")
        run.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...")
        shown = actions.add_parser("status", help="show which tokens are held, and how many processes wait")
        shown.add_argument("--json", action="store_true")
        for action in (run, shown):
            action.add_argument("--socket", type=Path)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        try:
            return {"serve": _serve, "run": _run, "status": _status}[options.action](options)
        except (TokensUnavailable, BadVerdict) as error:
            raise UsageFault(str(error)) from None


def _add_serve(parser: argparse.ArgumentParser) -> None:
    defaults = TokenLimits()
    parser.add_argument("area", type=Path, help="the directory of the storage area")
    parser.add_argument("--socket", type=Path, help=f"(default: {_default_socket()})")
    parser.add_argument("--mode", type=_octal, default=0o600, help="permissions of the socket (600)")
    parser.add_argument("--readers", type=_count, help="processes that may read at once")
    parser.add_argument("--writers", type=_count, help="processes that may write at once")
    parser.add_argument(
        "--from-sweep",
        type=Path,
        metavar="FILE.json",
        help="take both from the output of python -m forecasting sweet-spot --json; none where that is best",
    )
    parser.add_argument(
        "--quantum-bytes",
        type=_count,
        default=defaults.quantum_bytes,
        help="a process gives a token back after so many bytes, if another waits (%(default)s)",
    )
    parser.add_argument(
        "--linger-seconds",
        type=_seconds,
        default=defaults.linger_seconds,
        help="or when it has not used it so long (%(default)s)",
    )


def _serve(options: argparse.Namespace) -> int:
    if not options.area.is_dir():
        raise UsageFault(f"{options.area}: it is not a directory")
    area = Area(options.area.resolve(), _socket(options), _limits(options))
    asyncio.run(_serve_until_signal(area, options.mode))
    return 0


def _limits(options: argparse.Namespace) -> TokenLimits:
    times = {"quantum_bytes": options.quantum_bytes, "linger_seconds": options.linger_seconds}
    if options.from_sweep is not None:
        if options.readers or options.writers:
            raise UsageFault("give --from-sweep, or --readers and --writers, not both")
        readers, writers, off_reason = from_sweep(options.from_sweep)
        return TokenLimits(readers, writers, off_reason=off_reason, **times)
    if not (options.readers and options.writers):
        raise UsageFault("give --readers and --writers, or --from-sweep")
    return TokenLimits(options.readers, options.writers, **times)


async def _serve_until_signal(area: Area, mode: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with server.serving(area, mode):
        limits = area.limits
        tokens = limits.off_reason and f"no limit: {limits.off_reason}"
        tokens = tokens or f"readers {limits.readers}, writers {limits.writers}"
        sys.stdout.write(f"{area.directory}: {tokens}; socket {area.socket}\n")
        sys.stdout.flush()
        await stop.wait()


def _run(options: argparse.Namespace) -> int:
    """Run the program. It runs without limits where none can be had, after a warning."""
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise UsageFault("give the program to run: tokens run -- PROGRAM ...")
    try:
        socket = _socket(options)
        limits = _environment(server.status(socket), socket, program[0])
        if limits:
            return _run_limited(program, limits)
    except TokensUnavailable as error:
        _warn(f"{error}; {program[0]} runs without limits")
    except OSError as error:
        return _cannot_run(program[0], error)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
    try:
        os.execvp(program[0], program)  # noqa: S606 - what the user gave
    except OSError as error:
        return _cannot_run(program[0], error)


def _run_limited(program: Sequence[str], limits: Mapping[str, str]) -> int:
    run = run_limited(program, {**os.environ, **limits})
    if not (run.has_asked or run.has_warned):
        _warn(
            f"no process of {program[0]} asked for a token: none read or wrote a file below "
            f"{limits['GRIDCAST_TOKENS_AREA']}, or those that did are static, change their user, or use "
            "io_uring or memory-mapped files"
        )
    return run.status


def _cannot_run(program: str, error: OSError) -> int:
    _warn(f"cannot run {program}: {error.strerror}")
    return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE


def _environment(status: Mapping[str, Any], socket: Path, program: str) -> dict[str, str]:
    """Return the variables that limit *program*; none, after a warning, where there is no limit."""
    off_reason = status["off_reason"] or unreachable(program)
    if off_reason:
        _warn(f"{program} runs without limits: {off_reason}")
        return {}
    preloaded = [str(library(user_cache())), *filter(None, [os.environ.get("LD_PRELOAD")])]
    return {
        "LD_PRELOAD": ":".join(preloaded),
        "GRIDCAST_TOKENS_SOCKET": str(socket.absolute()),
        "GRIDCAST_TOKENS_AREA": status["directory"],
        "GRIDCAST_TOKENS_QUANTUM": str(status["quantum_bytes"]),
        "GRIDCAST_TOKENS_LINGER": repr(status["linger_seconds"]),
    }


def _status(options: argparse.Namespace) -> int:
    status = server.status(_socket(options))
    if options.json:
        sys.stdout.write(json.dumps(status, indent=2) + "\n")
        return 0
    sys.stdout.write(f"{status['directory']}\n")
    if status["off_reason"]:
        sys.stdout.write(f"no limit: {status['off_reason']}\n")
        return 0
    for direction, figures in status["tokens"].items():
        held = figures["held_seconds"]
        longest = f", the longest for {max(held):.3f} s" if held else ""
        sys.stdout.write(
            f"{direction:<6} {len(held)} of {figures['limit']} held{longest}; {figures['waiting']} wait; "
            f"{figures['granted']} granted, {figures['waited']} of them after a wait\n"
        )
    return 0


def _warn(text: str) -> None:
    sys.stderr.write(f"gridcast tokens: {text}\n")


def _socket(options: argparse.Namespace) -> Path:
    """Return the socket that *options* name, or the default.

    Raises:
        TokensUnavailable: another user could put an own socket at the place of the default.
    """
    if options.socket is not None:
        return Path(options.socket)
    default = _default_socket()
    if reason := unsafe_reason(default):
        raise TokensUnavailable(f"cannot use the socket {default}: {reason}, or name one with --socket")
    return default


def _default_socket() -> Path:
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp", f"gridcast-tokens-{os.getuid()}")  # noqa: S108


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= _LONGEST_LINGER:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to {_LONGEST_LINGER}, got {text!r}")
    return seconds


def _octal(text: str) -> int:
    try:
        mode = int(text, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise argparse.ArgumentTypeError(f"expected permissions as 600 or 660, got {text!r}")
    return mode
