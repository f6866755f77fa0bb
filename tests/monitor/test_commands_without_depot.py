"""Commands that need no depot work in a fresh checkout, and where the depot does not answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from monitor.core.env import ROOT

NOWHERE = "postgresql://gridcast@127.0.0.1:1/depot"
# Calls manage.py for each list of arguments in turn, and prints the exit status and the output of each.
CALLS = """
import contextlib, io, json, sys
from manage import main
ended = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["manage.py", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            status = main()
        except SystemExit as exit:
            status = exit.code
    ended.append([status, printed.getvalue()])
print(json.dumps(ended))
"""


def environment(var: Path, url: str) -> dict[str, str]:
    """Return an environment whose state is an empty directory; without *url*, as in a fresh checkout."""
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**inherited, "GRIDCAST_VAR": str(var), **({"DATABASE_URL": url} if url else {})}


def called(commands: list[list[str]], env: Mapping[str, str]) -> list[tuple[int | str | None, str]]:
    """Return exit status and output of each of *commands*, called in one process."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(commands)],
        env={**env, "DJANGO_SETTINGS_MODULE": "monitor.settings"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(status, printed) for status, printed in json.loads(done.stdout)]


@pytest.mark.parametrize("url", [NOWHERE, ""], ids=["refused", "fresh checkout"])
def test_a_command_that_needs_no_depot_works_without_one(tmp_path: Path, url: str) -> None:
    texts, mine, grid = tmp_path / "texts", tmp_path / "mine.yaml", tmp_path / "grid.yaml"
    texts.write_text("ssh: connect to host a port 22: Connection refused\nthe cat ate it\n")
    mine.write_text("cat: {title: Cat, category: user, severity: minor, patterns: ['the cat ate']}\n")
    grid.write_text("version: 1\n")
    expected = {
        ("report", "storage"): "No depot was read: connection ",
        ("failures", "classify", str(texts)): "ssh-connect-refused\tresource",
        ("failures", "classify", str(texts), "--signatures", str(mine)): "cat\tuser\tthe cat ate it",
        ("grid", "example", "minimal"): "version: 1",
        ("grid", "validate", "--alone", str(grid)): "Valid: 0 sites",
        ("grid", "schema"): '"$schema"',
        ("grid", "reference"): "# Grid file reference",
        ("report_schema",): '"$schema"',
        ("testbed", "mend"): "",
        ("import", "csv", "--help"): "usage: manage.py import csv",
    }
    ended = called([list(arguments) for arguments in expected], environment(tmp_path / "var", url))
    failed = {
        arguments: (status, printed[:200])
        for (arguments, words), (status, printed) in zip(expected.items(), ended, strict=True)
        if status or words not in printed
    }
    assert failed == {}
    report = ended[0][1]
    assert "published: 16 drives, no RAID" in report
    assert "There are published and emulated numbers only" in report or shutil.which("cc") is None


@pytest.mark.parametrize("arguments", [["failures", "classify", "-", "--own"], ["report", "study"]])
def test_a_command_that_needs_the_depot_says_what_to_do(tmp_path: Path, arguments: list[str]) -> None:
    ((status, printed),) = called([arguments], environment(tmp_path / "var", NOWHERE))
    assert printed == ""
    assert "start it (make serve starts one)" in str(status)
