"""The contract of shells, run over every file in ``reporters/shells/``."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from probes.base import InvalidParameters, NoData
from reporters import shells
from reporters.base import CommandFailed, TookTooLong
from reporters.batch.fork import Batch
from reporters.registry import UnknownPlugin
from tests.reporters.places import LABEL, Place, two_places
from tests.reporters.ssh_sites import processes_naming
from tests.waiting import eventually

ODD = (
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
)
TEXT = "line\n" * 60_000


def running(*argv: str, input: str | None = None) -> Callable[[Place], Any]:
    return lambda place: place.shell.run(argv, timeout_seconds=60, input=input)


def checking(script: str, doing: str) -> Callable[[Place], Any]:
    return lambda place: place.shell.check(["sh", "-c", script], timeout_seconds=60, doing=doing)


def meeting(own: str, other: str) -> Callable[[Place], Any]:
    """A program that waits for another."""
    meet = 'touch "$1/$2"; until [ -e "$1/$3" ]; do sleep 0.02; done; echo met'
    return lambda place: running("sh", "-c", meet, "sh", place.resource.scratch, own, other)(place)


# Some shells take seconds for each program, so all these run in parallel.
AT_ONCE = {
    "odd arguments": running("printf", "%s|", *ODD, "y"),
    "both outputs": running("sh", "-c", "echo out; echo err >&2; exit 3"),
    "exit status 255": running("sh", "-c", "exit 255"),
    "killed": running("sh", "-c", "kill -KILL $$"),
    "missing": running("no-such-program"),
    "much input": running("sha256sum", input=TEXT),
    "label": running("sh", "-c", 'echo "$LC_GRIDCAST_RUN"'),
    "well": checking("echo hi", "greet"),
    "badly": checking("echo note: starting >&2; echo 'x.c:1: fatal error: boom' >&2; exit 4", "compile x.c"),
    "silently": checking("exit 7", "try"),
    "a": meeting("a", "b"),
    "b": meeting("b", "a"),
}

Answers = dict[str, Future[Any]]


@pytest.fixture(scope="module", params=shells.names(), ids=shells.names())
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with two_places(request.param) as (one, _):
        yield one


@pytest.fixture(scope="module")
def answers(place: Place) -> Iterator[Answers]:
    """The results of ``AT_ONCE``."""
    with ThreadPoolExecutor(len(AT_ONCE)) as pool:
        yield {name: pool.submit(work, place) for name, work in AT_ONCE.items()}


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(UnknownPlugin, match=r"there is no shell '\.\.os'; known are .*local.*ssh"):
        shells.load("..os")


def test_every_argument_arrives_unchanged(answers: Answers) -> None:
    assert answers["odd arguments"].result().stdout == "".join(f"{argument}|" for argument in (*ODD, "y"))


def test_exit_status_and_both_outputs_come_back(answers: Answers) -> None:
    done = answers["both outputs"].result()
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_a_programs_own_exit_status_255_is_its_own(answers: Answers) -> None:
    assert answers["exit status 255"].result().returncode == 255


def test_a_killed_program_has_the_exit_status_of_a_shell(answers: Answers) -> None:
    assert answers["killed"].result().returncode == 128 + 9


def test_a_missing_program_has_the_exit_status_of_a_shell_and_is_named(answers: Answers) -> None:
    done = answers["missing"].result()
    assert done.returncode == 127
    assert "no-such-program" in done.stderr
    assert "No such file" in done.stderr


def test_input_arrives_completely(answers: Answers) -> None:
    arrived = answers["much input"].result().stdout.split()[0]
    assert arrived == hashlib.sha256(TEXT.encode()).hexdigest()


def test_the_environment_has_the_label_of_the_run(answers: Answers) -> None:
    assert answers["label"].result().stdout == f"{LABEL}\n"


def test_check_returns_stdout(answers: Answers) -> None:
    assert answers["well"].result() == "hi\n"


def test_the_error_of_check_has_action_resource_and_message(place: Place, answers: Answers) -> None:
    with pytest.raises(CommandFailed) as raised:
        answers["badly"].result()
    error = raised.value
    assert error.message == f"cannot compile x.c at {place.resource.name}: x.c:1: fatal error: boom"
    assert (error.resource, error.exit_status) == (place.resource.name, 4)
    assert error.stderr_tail == "note: starting\nx.c:1: fatal error: boom\n"


def test_the_error_of_check_has_the_exit_status_without_output(answers: Answers) -> None:
    with pytest.raises(CommandFailed, match=r"cannot try at \w+: exit status 7"):
        answers["silently"].result()


def test_several_programs_run_at_once(answers: Answers) -> None:
    assert [answers[name].result().stdout for name in "ab"] == ["met\n", "met\n"]


def test_a_program_over_its_limit_is_stopped_at_the_site(place: Place) -> None:
    seconds, started = str(secrets.randbelow(10**12)), place.scratch / "started"
    limit_seconds = 1.0 if place.shell.interactive else 4.0
    argv = ["sh", "-c", 'touch "$1"; exec sleep "$2"', "sh", str(started), seconds]
    message = rf"^sh at {place.resource.name} ran longer than {limit_seconds:g} s and was stopped$"
    with pytest.raises(TookTooLong, match=message) as raised:
        place.shell.run(argv, timeout_seconds=limit_seconds)
    assert raised.value.resource == place.resource.name
    assert started.exists()
    assert eventually(lambda: not processes_naming(f"sleep\0{seconds}"))


def test_a_started_program_reads_its_input_or_is_refused(place: Place) -> None:
    if not place.shell.interactive:
        with pytest.raises(NoData, match=r"^cannot start sh in the background at one"):
            place.shell.start(["sh"])
        with pytest.raises(
            InvalidParameters, match=r"^resource one: batch 'fork': .* its shell does not support"
        ):
            Batch(place.shell)
        return
    running = place.shell.start(["sh", "-c", "echo ready; read -r _; echo over"])
    assert running.wait_for_output(lambda text: text == "ready\n", 60)
    assert running.poll() is None
    running.close_input()
    assert running.wait(60).stdout == "ready\nover\n"


def test_connecting_again_changes_nothing(place: Place) -> None:
    place.shell.connect(timeout_seconds=60)
    assert place.shell.run(["true"], timeout_seconds=60).returncode == 0


@pytest.mark.parametrize("kind", [kind for kind in shells.names() if shells.load(kind).interactive])
def test_closing_stops_started_programs(kind: str) -> None:
    with two_places(kind) as (place, _):
        running = place.shell.start(["sh", "-c", "echo ready; exec sleep 600"])
        assert running.wait_for_output(lambda text: text == "ready\n", 60)
        place.shell.close()
        place.shell.close()
        assert running.poll() is not None
