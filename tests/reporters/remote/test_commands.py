"""The commands of the reporter at a site, in this process and without a server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reporters.remote import commands
from reporters.remote.main import main
from reporters.report import from_json
from tests.waiting import eventually


def test_once_prints_stages_and_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["once", "login", f"--scratch={tmp_path}"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("passed in ")
    assert "login.seconds" in printed


def test_once_prints_the_report_as_it_would_be_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["once", "login", "--json", "--set", "logins=2", f"--scratch={tmp_path}"]) == 0
    report = from_json(capsys.readouterr().out)
    assert report.outcome == "passed"
    assert report.parameters["logins"] == 2


def has_file(directory: str | Path) -> bool:
    """Return at the first file: a whole list of a directory in which millions are made would not end."""
    with os.scandir(directory) as entries:
        return any(entry.is_file() or (entry.is_dir() and has_file(entry.path)) for entry in entries)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_once_that_is_ended_by_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    # So many files take minutes: it has not ended when the signal comes, however late that is.
    settings = ["--set=tool=own", "--set=files=10000000", "--set=limit_seconds=3600"]
    default = ["env", "--default-signal=INT,HUP"]  # nohup, and a shell's background, ignore them
    reporter = [sys.executable, "-m", "reporters", "once", "disk", *settings, f"--scratch={tmp_path}"]
    with subprocess.Popen([*default, *reporter], stdout=subprocess.PIPE) as process:
        assert eventually(lambda: has_file(tmp_path))
        process.send_signal(number)
        assert process.communicate()[0] == b""
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["once", "longin"], "there is no probe 'longin'"),
        (["once", "gather"], "gather needs several resources"),
        (["once", "login", "--limit", "0"], "--limit: expected a positive number of seconds, got 0"),
        (["once", "login", "--set", "logins"], "expected NAME=VALUE with a parameter of the probe (logins)"),
        (["once", "login", "--set", "logns=2"], "expected NAME=VALUE with a parameter of the probe (logins)"),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.startswith("gridcast-reporter once: ")
    assert message in error


def test_a_failed_run_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["once", "disk", "--trial", f"--scratch={tmp_path / 'missing'}"]) == 1
    assert capsys.readouterr().out.startswith("failed in ")


def test_a_parameter_of_another_type_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["once", "login", "--set", "logins=many", f"--scratch={tmp_path}"]) == 1
    assert "logins: expected an integer, got 'many'" in capsys.readouterr().out


def test_the_doctor_finds_this_host_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", f"--scratch={tmp_path}"]) == 0
    printed = capsys.readouterr().out
    assert "MISSING" not in printed
    assert f"free in {tmp_path}" in printed


def test_the_doctor_names_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("sh", "df"):
        (tmp_path / program).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor", f"--scratch={tmp_path / 'none'}"]) == 1
    printed = capsys.readouterr().out
    assert "MISSING  programs       not found: timeout, setsid, mkfifo" in printed
    assert (
        f"MISSING  scratch        cannot write to {tmp_path / 'none'}: No such file or directory" in printed
    )
    assert "MISSING  key pair" in printed


def test_the_doctor_refuses_a_scratch_that_every_user_can_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o777)
    assert main(["doctor", f"--scratch={tmp_path}"]) == 1
    assert f"MISSING  scratch        {tmp_path} has mode drwxrwxrwx" in capsys.readouterr().out


def test_the_doctor_says_whether_the_policy_is_in_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["doctor", f"--scratch={tmp_path}", f"--state={tmp_path}"]
    policy = tmp_path / "site-policy.json"
    assert main(argv) == 0
    assert "ok       policy         absent" in capsys.readouterr().out
    policy.write_text('{"caps": {"load1": 8}, "approval": "ask"}')
    policy.chmod(0o600)
    assert main(argv) == 0
    assert "policy         in force: caps; disclosure full, approval ask; sha256 " in capsys.readouterr().out
    policy.write_text('{"caps": {\n  "laod1": 8}}')
    assert main(argv) == 1
    printed = capsys.readouterr().out
    assert "MISSING  policy         unreadable, so nothing runs: " in printed
    assert "line 2 column 3: caps.laod1: expected one of the keys" in printed


def test_a_command_loads_no_other_command(pyz: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "from reporters.remote.main import main\n"
        "main(['doctor'])\n"
        "print([name for name in sys.modules if name.startswith('reporters.remote.commands.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(pyz)], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("['reporters.remote.commands.doctor']\n")


def test_help_names_every_command(pyz: Path) -> None:
    done = subprocess.run([sys.executable, str(pyz), "--help"], capture_output=True, text=True, check=True)
    assert set(commands.names()) <= set(done.stdout.split())


def test_a_closed_output_is_no_traceback(pyz: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, str(pyz), "doctor", f"--scratch={tmp_path}"]
    done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.stderr == b""


def test_the_report_is_valid_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["once", "noop", "--json", f"--scratch={tmp_path}"])
    assert json.loads(capsys.readouterr().out)["probe"]["name"] == "noop"
