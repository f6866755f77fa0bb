"""The command that runs another command, and reports how long that took."""

from __future__ import annotations

import argparse
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import datetime, timezone

from gridcast_client import Client, GridcastError, InvalidInput
from gridcast_client.result import DONE, Result, delivered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", help="the series of the report")
    parser.epilog = "What stands after -- is the command: gridcast measure SERIES -- COMMAND ..."


def measure(connect: Callable[[], Client], given: argparse.Namespace) -> Result:
    """Run a command, and report how long it took and whether it passed."""
    argv = given.program
    if not argv:
        raise InvalidInput("expected a command after --: gridcast measure SERIES -- COMMAND ...")
    began, clock = datetime.now(timezone.utc), time.monotonic()
    status, problem = run_command(argv)
    report = {
        "series": given.series,
        "started_at": began.isoformat(),
        "seconds": round(time.monotonic() - clock, 6),
        "outcome": "failed" if status else "passed",
        **({"failure": problem or f"{argv[0]} ended with exit status {status}"} if status else {}),
    }
    try:
        client = connect()
        sent = delivered(client.send([report]), is_kept=client.spool is not None)
    except GridcastError as error:  # the command matters more than its report, and has run
        return Result(report, "", status, error, f"{problem}; not reported".lstrip("; "))
    return Result(sent.answer, "", status, sent.error, problem or ("" if sent.status == DONE else sent.text))


def run_command(argv: list[str]) -> tuple[int, str]:
    """Run *argv* to its end; return its exit status as a shell does, and why it could not be run.

    SIGTERM and SIGHUP are passed on to it.
    """
    running: list[subprocess.Popen[bytes]] = []
    early: list[int] = []  # signals that came before the command ran

    def pass_on(number: int, _: object) -> None:
        if running:
            running[0].send_signal(number)
        else:
            early.append(number)

    # Set before the command starts: it may be told to end as soon as it runs. It does not inherit handlers.
    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        running.append(subprocess.Popen(argv))
        for number in early:
            running[0].send_signal(number)
        # The terminal sends it to both. The command would inherit that it is ignored: it is set afterwards.
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = running[0].wait()
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        return 127 if is_missing else 126, f"cannot run {argv[0]}: {error.strerror}"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return (status if status >= 0 else 128 - status), ""
