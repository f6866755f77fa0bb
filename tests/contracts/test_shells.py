"""What every shell promises, run over every file in ``reporters/shells/``."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from reporters import shells
from reporters.base import CommandFailed, TookTooLong
from reporters.registry import UnknownKind
from tests.reporters.places import LABEL, Place, two_places
from tests.reporters.ssh_sites import eventually, processes_naming


@pytest.fixture(scope="module", params=shells.names())
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with two_places(request.param) as (one, _):
        yield one


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(UnknownKind, match=r"there is no shell '\.\.os'; known are .*local.*ssh"):
        shells.load("..os")


@pytest.mark.parametrize(
    "argument",
    [
        "",
        " ",
        "a b",
        "'",
        '"',
        "$HOME",
        "`id`",
        "$(id)",
        "a;b",
        "*",
        "~",
        "\\",
        "!x",
        "-n",
        "&",
        "ä€",
        "a\nb",
    ],
)
def test_every_argument_arrives_as_it_is(place: Place, argument: str) -> None:
    done = place.shell.run(["printf", "%s|", "x", argument, "y"], timeout_seconds=20)
    assert done.stdout == f"x|{argument}|y|"


def test_exit_status_and_both_outputs_come_back(place: Place) -> None:
    done = place.shell.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_seconds=20)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_a_programs_own_exit_status_255_is_its_own(place: Place) -> None:
    said = "ssh: connect to host x port 22: Connection refused\nConnection closed\n"
    done = place.shell.run(["sh", "-c", 'printf %s "$1" >&2; exit 255', "sh", said], timeout_seconds=20)
    assert (done.returncode, done.stderr) == (255, said)


def test_a_killed_program_ends_as_shells_say_it(place: Place) -> None:
    assert place.shell.run(["sh", "-c", "kill -KILL $$"], timeout_seconds=20).returncode == 128 + 9


def test_a_missing_program_ends_as_shells_say_it_and_is_named(place: Place) -> None:
    done = place.shell.run(["no-such-program"], timeout_seconds=20)
    assert done.returncode == 127
    assert "no-such-program" in done.stderr
    assert "No such file" in done.stderr


def test_input_arrives_whole(place: Place) -> None:
    text = "line\n" * 60_000
    done = place.shell.run(["sha256sum"], timeout_seconds=20, input=text)
    assert done.stdout.split()[0] == hashlib.sha256(text.encode()).hexdigest()


def test_the_run_can_be_told_from_the_environment(place: Place) -> None:
    done = place.shell.run(["sh", "-c", 'echo "$LC_GRIDCAST_RUN"'], timeout_seconds=20)
    assert done.stdout == f"{LABEL}\n"


def test_a_program_that_takes_too_long_is_stopped_at_the_site_too(place: Place) -> None:
    seconds = str(secrets.randbelow(10**12))
    with pytest.raises(TookTooLong, match=f"sleep at {place.resource.name} ran longer than 0.3 s") as raised:
        place.shell.run(["sleep", seconds], timeout_seconds=0.3)
    assert raised.value.resource == place.resource.name
    assert eventually(lambda: not processes_naming(f"sleep\0{seconds}"))


def test_check_returns_what_was_printed(place: Place) -> None:
    assert place.shell.check(["echo", "hi"], timeout_seconds=20, doing="greet") == "hi\n"


def test_check_says_what_was_tried_where_and_what_came_back(place: Place) -> None:
    argv = ["sh", "-c", "echo note: starting >&2; echo 'x.c:1: fatal error: boom' >&2; exit 4"]
    with pytest.raises(CommandFailed) as raised:
        place.shell.check(argv, timeout_seconds=20, doing="compile x.c")
    error = raised.value
    assert error.message == f"cannot compile x.c at {place.resource.name}: x.c:1: fatal error: boom"
    assert (error.resource, error.exit_status) == (place.resource.name, 4)
    assert error.stderr_tail == "note: starting\nx.c:1: fatal error: boom\n"


def test_check_of_a_silent_failure_says_the_exit_status(place: Place) -> None:
    with pytest.raises(CommandFailed, match=r"cannot try at \w+: exit status 7"):
        place.shell.check(["sh", "-c", "exit 7"], timeout_seconds=20, doing="try")


def test_several_programs_run_at_once(place: Place) -> None:
    meet = 'touch "$1/$2"; until [ -e "$1/$3" ]; do sleep 0.02; done; echo met'  # each waits for the other
    scratch = place.resource.scratch

    def wait(names: tuple[str, str]) -> str:
        return place.shell.run(["sh", "-c", meet, "sh", scratch, *names], timeout_seconds=20).stdout

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(wait, [("a", "b"), ("b", "a")])) == ["met\n", "met\n"]


def test_a_started_program_sees_the_end_of_its_input_when_told(place: Place) -> None:
    running = place.shell.start(["sh", "-c", "echo ready; read -r _; echo over"])
    assert running.wait_for_output(lambda text: text == "ready\n", 20)
    assert running.poll() is None
    running.close_input()
    assert running.wait(20).stdout == "ready\nover\n"


def test_connecting_again_changes_nothing(place: Place) -> None:
    place.shell.connect(timeout_seconds=20)
    assert place.shell.run(["true"], timeout_seconds=20).returncode == 0


@pytest.mark.parametrize("kind", shells.names())
def test_closing_stops_what_was_started(kind: str) -> None:
    with two_places(kind) as (place, _):
        running = place.shell.start(["sh", "-c", "echo ready; exec sleep 600"])
        assert running.wait_for_output(lambda text: text == "ready\n", 20)
        place.shell.close()
        place.shell.close()
        assert running.poll() is not None
