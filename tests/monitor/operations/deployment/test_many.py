"""Steps at several sites at once, and their display."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable

from monitor.operations.deployment.many import MOST_AT_ONCE, at_all
from monitor.operations.deployment.site_host import DeploymentFault


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(text: str) -> list[str]:
    """Return the lines of a terminal after *text*, which moves up and overwrites whole lines."""
    lines: list[str] = []
    row = 0
    for part in text.split("\n")[:-1]:
        match = re.fullmatch("(?:\033\\[(\\d+)A)?\r\033\\[K(.*)", part)
        assert match is not None, part
        row -= int(match[1] or 0)
        lines[row : row + 1] = [match[2]]
        row += 1
    return lines


def fail(say: Callable[[str], None]) -> None:
    say("log in")
    raise DeploymentFault("no route\nto the host")


def succeed(say: Callable[[str], None]) -> None:
    say("log in")
    say("reports")


def test_failures_are_returned_by_name_and_the_others_go_on() -> None:
    out = io.StringIO()
    faults = at_all({"anl": fail, "ncsa": succeed}, out)
    assert {name: str(fault) for name, fault in faults.items()} == {"anl": "no route\nto the host"}
    assert sorted(out.getvalue().splitlines()) == sorted(
        ["anl   log in", "anl   FAILED: no route", "to the host", "ncsa  log in", "ncsa  reports"]
    )


def test_a_terminal_has_one_line_for_each_site() -> None:
    terminal = Terminal()
    at_all({"anl": fail, "ncsa": succeed}, terminal)
    assert screen(terminal.getvalue()) == ["anl   FAILED: no route", "ncsa  reports"]


def test_sites_are_served_at_once_but_not_all_of_many() -> None:
    """Each of the first waits until all of the first have begun."""
    barrier, running, most = threading.Barrier(MOST_AT_ONCE), [0], [0]
    lock = threading.Lock()

    def work(say: Callable[[str], None]) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        barrier.wait(timeout=60)
        with lock:
            running[0] -= 1

    works = {f"site{number}": work for number in range(2 * MOST_AT_ONCE)}
    assert at_all(works, io.StringIO()) == {}
    assert most[0] == MOST_AT_ONCE
