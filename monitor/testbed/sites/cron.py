"""The cron of a site: runs the commands of its crontab when the site starts, and at their times (UTC)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from reporters.schedule import InvalidSchedule, parse_schedule

AT_START = "@reboot"
# The program ``crontab`` of a site; {table} is the file that cron reads.
CRONTAB_PROGRAM = """\
case $1 in
-l) cat {table} 2>/dev/null || {{ echo "no crontab for $USER" >&2; exit 1; }} ;;
-r) rm {table} ;;
*) cat -- "$1" > {table}.new && mv {table}.new {table} ;;
esac
"""
_FIELDS = 5

log = logging.getLogger(__name__)


class SiteCron:
    """Runs the commands in the file *table*, in the directory *home*, with the variables of *environment*."""

    def __init__(self, table: Path, home: Path, environment: Callable[[], dict[str, str]]) -> None:
        self._table = table
        self._home = home
        self._environment = environment
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run commands until cancelled. Running commands are not stopped then."""
        self._start(commands(self._table, AT_START))
        began = datetime.now(UTC)
        while True:
            await asyncio.sleep(1)
            now = datetime.now(UTC)
            if now.replace(second=0, microsecond=0) > began:
                self._start(due_commands(self._table, began, now))
                began = now

    def _start(self, due: Iterator[str]) -> None:
        for command in due:
            task = asyncio.create_task(self._execute(command))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _execute(self, command: str) -> None:
        with suppress(OSError):  # the site has been removed
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                command,
                cwd=self._home,
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            await process.wait()


def commands(table: Path, name: str) -> Iterator[str]:
    """Yield the commands of the lines of *table* that begin with *name*."""
    for line in _lines(table):
        first, _, command = line.partition(" ")
        if first == name:
            yield command


def due_commands(table: Path, after: datetime, until: datetime) -> Iterator[str]:
    """Yield the commands of *table* with a time after *after*, until *until*."""
    for line in _lines(table):
        words = line.split(maxsplit=_FIELDS)
        if line.startswith(("#", "@")) or len(words) <= _FIELDS:
            continue
        try:
            schedule = parse_schedule(" ".join(words[:_FIELDS]), "")
        except InvalidSchedule as error:
            log.warning("%s: %s", table, error)
            continue
        if next(schedule.slots(after, until), None) is not None:
            yield words[_FIELDS]


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
