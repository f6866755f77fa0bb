"""The command: what it prints, and its exit status."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gridcast_client
from gridcast_client import Request, Response, Transport, Unreachable
from gridcast_client.__main__ import COMMANDS, main
from gridcast_client.__main__ import parser as command_line
from gridcast_client.completion import SCRIPTS, completions
from gridcast_client.texts import duration, table
from tests.client.grid_rows import define_rings, new_token
from tests.client.in_process import URL, Answers, application, document, problem
from tests.reporters.needs import needs
from tests.waiting import eventually

SOURCE = Path(gridcast_client.__file__).parents[1]
AWAY = Unreachable("away")
RECEIPT = '{"run": null, "accepted": true, "duplicate": false, "conflict": false, "error": ""}'
ACCEPTED = document(f'{{"receipts": [{RECEIPT}], "refused": []}}')


class Shell:
    """Runs command lines in this process, with the environment of a user."""

    def __init__(self, capture: pytest.CaptureFixture[str], token: str = "secret") -> None:
        self._capture = capture
        self.environ = {"GRIDCAST_URL": URL, "GRIDCAST_TOKEN": token}

    def run(self, *argv: str, transport: Transport = application) -> tuple[int, str, str]:
        """Return the exit status, the output and the errors."""
        status = main(argv, transport=transport, environ=self.environ)
        return (status, *self._capture.readouterr())


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def grid(db: None, capsys: pytest.CaptureFixture[str]) -> Shell:
    define_rings()
    return Shell(capsys, new_token())


def test_a_forecast_is_printed_for_people(grid: Shell) -> None:
    status, out, err = grid.run("ask", "quick", "--quantiles", "0.5,0.9")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "quick  total.seconds"
    assert lines[1] == "median     10 s; mean 10 s"
    assert re.fullmatch(r"quantiles  50 %: [\d.]+ s, 90 %: [\d.]+ s", lines[3])
    assert lines[4] == "passes     75 %; 13.3 s until a run has passed"
    assert re.fullmatch(r"data       4 runs, the newest 2 h.* old", lines[5])


def test_a_forecast_is_printed_as_json(grid: Shell) -> None:
    for argv in (["--json", "ask", "quick"], ["ask", "quick", "--json"]):
        status, out, _ = grid.run(*argv)
        answer = json.loads(out)
        assert (status, answer["series"], answer["median"]) == (0, "quick", 10.0)
        assert answer["quantiles"].keys() == {"0.5", "0.9", "0.95"}


def test_no_forecast_is_exit_status_3(grid: Shell) -> None:
    status, out, err = grid.run("ask", "new")
    assert (status, out) == (3, "")
    assert "409 too_few: no forecast of total.seconds of new" in err
    status, out, _ = grid.run("ask", "new", "--json")
    error = json.loads(out)["error"]
    assert (status, error["kind"], error["code"], error["again"]) == (3, "NoForecast", "too_few", False)


def test_candidates_are_printed_as_a_table(grid: Shell) -> None:
    status, out, _ = grid.run("rank", "slow", "new", "quick")
    assert status == 0
    rows = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    assert rows[0] == ["rank", "candidate", "90 % within", "median", "passes", "runs", "forecast"]
    ranked = [["1", "quick", "19 s", "10 s"], ["2", "slow", "57 s", "30 s"]]
    assert [[cell for cell in row if cell][:4] for row in rows[1:3]] == ranked
    assert rows[5][:2] == ["new", "too_few"]


def test_the_best_candidate_is_printed_for_scripts(grid: Shell) -> None:
    by_key = [*("--candidate", "b:ring=beta,gamma"), *("--candidate", "a:ring=alpha,beta")]
    assert grid.run("rank", "--best", "--application", "circle", *by_key) == (0, "a\n", "")
    assert grid.run("rank", "--best", "slow", "quick") == (0, "quick\n", "")
    assert grid.run("rank", "--best", "new") == (3, "", "gridcast: no candidate has a forecast\n")


def test_an_outcome_is_told_with_times_of_a_batch_system(grid: Shell, tmp_path: Path) -> None:
    _, out, _ = grid.run("ask", "quick", "--json")
    forecast = str(json.loads(out)["id"])
    now = int(time.time())
    times = ["--started", str(now - 60), "--ended", str(now)]
    assert grid.run("tell", forecast, "slurm-81", "passed", *times) == (0, "slurm-81 passed\n", "")
    status, out, _ = grid.run("tell", forecast, "slurm-81", "passed", *times)
    assert (status, out) == (0, "slurm-81 passed (told before)\n")
    assert grid.run("tell", forecast, "slurm-81", "failed", *times)[0] == 5
    status, out, _ = grid.run("tell", "999999", "x", "failed", *times, "--spool", str(tmp_path / "spool"))
    assert (status, "unknown_forecast: there is no forecast 999999" in out) == (5, True)


def test_sites_and_runs_are_listed(grid: Shell) -> None:
    status, out, _ = grid.run("runs", "quick", "--limit", "2")
    assert status == 0
    assert [line.split()[2:4] for line in out.splitlines()[1:]] == [["quick", "passed"]] * 2
    status, out, _ = grid.run("sites")
    assert (status, [line.split()[0] for line in out.splitlines()[1:]]) == (
        0,
        ["site-of-alpha", "site-of-beta", "site-of-gamma"],
    )
    assert [line.split()[0] for line in grid.run("series")[1].splitlines()[1:]] == ["new", "quick", "slow"]
    assert grid.run("resources", "--site", "site-of-beta")[1].splitlines()[1].split()[0] == "beta"


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (AWAY, 4, "away; tried 2 times"),
        (problem(503, "depot_away"), 4, "Try again later."),
        (problem(503, "busy", retry_after="600"), 4, "Try again in 10 min."),
        (problem(401, "not_authenticated"), 5, "Issue a token on the account page"),
        (problem(404, "unknown_series"), 5, "404 unknown_series: because"),
        (document("<html>"), 5, "check that the URL is that of gridcast"),
    ],
)
def test_failures_have_an_exit_status_and_say_what_to_do(
    shell: Shell, answer: Response | Exception, status: int, said: str
) -> None:
    given, out, err = shell.run("ask", "quick", "--tries", "2", transport=Answers(answer))
    assert (given, out) == (status, "")
    assert err.startswith(f"gridcast: GET {URL}/api/v1/forecasts: ")
    assert said in err


@pytest.mark.parametrize(
    "argv",
    [
        ["ask", "--at", "yesterday"],
        ["ask", "--at", "2026-03-01T12:00:00"],
        ["ask", "--role", "ring"],
        ["ask", "--quantiles", "a,b"],
        ["rank", "--candidate", "ring=a"],
        ["tell", "1", "job", "unknown", "--started", "0", "--ended", "1"],
        ["nosuch"],
        [],
    ],
)
def test_an_invalid_command_line_is_exit_status_2(shell: Shell, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        shell.run(*argv)
    assert raised.value.code == 2


def test_invalid_settings_are_exit_status_2(shell: Shell) -> None:
    assert shell.run("ask", "x", "--url", "nowhere")[0] == 2
    assert shell.run("ask", "x", "--token-file", "/missing")[0] == 2
    for names in ([], ["x", "--application", "preco"]):
        status, _, err = shell.run("ask", *names)
        assert (status, err) == (
            2,
            "gridcast: expected either a series, or --application with --role or --resources\n",
        )
    assert shell.run("send")[0] == 2
    assert shell.run("send", "--series", "x")[0] == 2
    assert shell.run("send", "/missing/file")[0] == 2
    assert shell.run("deliver")[0] == 2
    assert shell.run("measure", "backup")[0] == 2


def test_reports_in_files_are_sent(shell: Shell, tmp_path: Path) -> None:
    files = {"one.json": '{"slot": "1",\n "series": "a"}', "list.json": '[{"slot": "2"}, {"slot": "3"}]'}
    files["lines.ndjson"] = '{"slot": "4"}\n\n{"slot": "5"}\n'
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    answers = Answers(document(f'{{"receipts": [{", ".join([RECEIPT] * 5)}], "refused": []}}'))
    assert shell.run("send", *(str(tmp_path / name) for name in files), transport=answers) == (
        0,
        "5 reports accepted\n",
        "",
    )


def test_a_report_that_is_kept_is_no_failure_and_one_that_is_lost_is(shell: Shell, tmp_path: Path) -> None:
    one = ["send", "--series", "backup", "--seconds", "3", "--tries", "1"]
    assert shell.run(*one, transport=Answers(AWAY))[0] == 4
    spool = ["--spool", str(tmp_path / "spool")]
    status, out, err = shell.run(*one, *spool, transport=Answers(AWAY))
    assert (status, out) == (0, "1 file waits in the spool\n")
    assert "away" in err
    assert shell.run("deliver", "--tries", "1", *spool, transport=Answers(AWAY))[0] == 4
    assert shell.run(*one, *spool, transport=Answers(problem(401, "not_authenticated")))[0] == 5
    two = document(f'{{"receipts": [{RECEIPT}, {RECEIPT}], "refused": []}}')
    assert shell.run("deliver", *spool, transport=Answers(two)) == (0, "2 reports accepted\n", "")
    assert shell.run("deliver", *spool, transport=Answers(AWAY)) == (0, "nothing to deliver\n", "")
    refusal = document(ACCEPTED.body.decode().replace("true", "false", 1).replace('""', '"series: none"'))
    status, out, _ = shell.run(*one, *spool, transport=Answers(refusal))
    assert (status, out) == (5, "1 refused\nrefused: series: none\n")


def measured(answers: Answers) -> dict[str, object]:
    report: dict[str, object] = json.loads(gzip.decompress(answers.requests[-1].body or b""))
    return report


def test_a_command_is_measured_and_its_exit_status_kept(shell: Shell) -> None:
    answers = Answers(ACCEPTED)
    assert shell.run("measure", "backup", "--", "true", transport=answers) == (0, "", "")
    report = measured(answers)
    assert (report["series"], report["outcome"]) == ("backup", "passed")
    assert 0 <= float(str(report["seconds"])) < 60
    assert shell.run("measure", "backup", "--json", "--", "sh", "-c", "exit 7", transport=answers)[0] == 7
    assert measured(answers)["failure"] == "sh ended with exit status 7"
    assert shell.run("measure", "backup", "--", "sh", "-c", "kill -9 $$", transport=answers)[0] == 137
    status, _, err = shell.run("measure", "backup", "--", "/no/such/program", transport=answers)
    assert (status, measured(answers)["outcome"]) == (127, "failed")
    assert "cannot run /no/such/program: No such file" in err


@pytest.mark.parametrize("given", [["--tries", "1"], ["--url", "nowhere"], ["--token-file", "/missing"]])
def test_a_command_runs_also_where_its_report_cannot_be_sent(
    shell: Shell, tmp_path: Path, given: list[str]
) -> None:
    argv = [*given, "measure", "backup", "--", "touch", str(tmp_path / "done")]
    status, _, err = shell.run(*argv, transport=Answers(AWAY))
    assert status == 0
    assert (tmp_path / "done").exists()
    assert "not reported" in err


def python(*argv: str, **environment: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    command = [sys.executable, "-m", "gridcast_client", *argv]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_signal_is_passed_on_to_the_measured_command(tmp_path: Path) -> None:
    script = f"cd {tmp_path}; trap 'touch told; exit 3' TERM; touch started; while :; do sleep 0.05; done"

    process = python("measure", "x", "--", "sh", "-c", script, GRIDCAST_URL="http://127.0.0.1:9")
    assert eventually((tmp_path / "started").exists)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 3
    assert (tmp_path / "told").exists()


def test_a_reader_that_closes_early_is_no_error() -> None:
    process = python("--help")
    assert process.stdout is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait() in {0, 120}


def test_every_command_has_a_summary() -> None:
    for run in (run for _, run in COMMANDS.values()):
        assert run.__doc__


# Texts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.01234, "0.0123 s"),
        (11.84, "11.8 s"),
        (99.99, "100 s"),
        (100.0, "1 min 40 s"),
        (120.0, "2 min"),
        (3599.9, "1 h"),
        (7260.0, "2 h 1 min"),
        (86400.0, "1 d"),
        (266400.0, "3 d 2 h"),
        (1e9, "11574 d 2 h"),
    ],
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_table_fits_the_terminal() -> None:
    rows = [("a-name", 7, "a reason that is long " * 5), ("b", 12, "tab\tand\x1b[2J")]
    text = table(("name", "n", "reason"), rows, 40)
    assert text.splitlines() == [
        "name     n  reason",
        "a-name   7  a reason that is long a rea…",
        "b       12  tab and [2J",
    ]
    assert max(len(line) for line in table(("name", "n", "reason"), rows, 60).splitlines()) == 60
    assert table(("name",), [], 40) == "name"


# Completion


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["as"], ["ask"]),
        (["r"], ["rank", "resources", "runs"]),
        (["ask", "--to"], ["--token-file", "--total"]),
        (["ask", "--total", ""], ["core", "essential", "total"]),
        (["--json", "tell", "1", "job", "f"], ["failed"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["ask", "--token-file", ""], []),
        (["measure", "backup", "--", "--"], []),
        (["nosuch"], []),
    ],
)
def test_words_are_completed(words: list[str], expected: list[str]) -> None:
    assert completions(command_line(), words) == expected


def test_every_shell_has_a_script(shell: Shell) -> None:
    for name in SCRIPTS:
        status, out, _ = shell.run("completion", name)
        assert (status, "gridcast complete --" in out) == (0, True)


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        (
            "bash",
            'source "$1"; COMP_WORDS=(gridcast ask --tot); COMP_CWORD=2; _gridcast; echo "${COMPREPLY[@]}"',
        ),
        ("fish", "source $argv[1]; complete -C 'gridcast ask --tot'"),
        (
            "zsh",
            "compdef() { }; compadd() { print -- ${(P)2} }; _files() { print files }; source $1;"
            " words=(gridcast ask --tot) CURRENT=3 _gridcast",
        ),
    ],
)
def test_shells_complete(tmp_path: Path, name: str, argv: str) -> None:
    needs(name)
    script = tmp_path / "script"
    script.write_text(SCRIPTS[name])
    command = tmp_path / "gridcast"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -m gridcast_client "$@"\n')
    command.chmod(0o755)
    arguments = ["-c", argv, *([] if name == "fish" else ["-"]), str(script)]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([name, *arguments], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["--total"], done.stderr


def test_the_request_of_a_command_names_it(shell: Shell) -> None:
    seen: list[Request] = []

    def note(request: Request, timeout_seconds: float) -> Response:
        seen.append(request)
        return problem(404, "x")

    shell.run("ask", "x", transport=note)
    assert seen[0].headers["User-Agent"].startswith("gridcast gridcast-client/")
