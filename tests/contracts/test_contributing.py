"""Every example of CONTRIBUTING.md works: planted in a copy of the source, and nothing else edited."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "probes",
    "reporters",
    "forecasting",
    "monitor",
    "tests",
    "templates",
    "pyproject.toml",
    "manage.py",
)
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = {path: code for code, path in re.findall(r"```python\n(# (\S+)\n.*?)```", TEXT, re.DOTALL)}
ADDITION = re.compile(r"^\+\+\+ b/(?P<file>\S+)\n@@.*\n\+(?P<added>.*)\n (?P<before>.*)$", re.MULTILINE)

# What no contract suite covers without a server of its kind: each example is used once.
USE = """
import os, sys, tempfile
from datetime import UTC, datetime
from pathlib import Path

import django

django.setup()
scratch = Path(tempfile.mkdtemp())

from probes.grid import CopyOptions
from reporters import batch, shells, transfers
from reporters.base import End
from reporters.config import ResourceConfig

here = ResourceConfig("here", "site", str(scratch))
shell = shells.load("polite")("here", "a run")
assert shell.run(["nice"], timeout_seconds=60).stdout == "19\\n"
(scratch / "a").write_bytes(b"x" * 1000)
transfer = transfers.load("dd")(End(here, shell), End(here, shell))
paths = str(scratch / "a"), str(scratch / "b")
assert transfer.copy(*paths, options=CopyOptions(), timeout_seconds=60).bytes == 1000
assert (scratch / "b").read_bytes() == b"x" * 1000
job = batch.load("background")(shell).submit(["true"], directory=str(scratch), cpus=1, wall_seconds=60)
assert job.wait_started(timeout_seconds=60) >= 0
assert job.wait_ended(timeout_seconds=60) >= 0
shell.close()

from monitor.depot.samples import formats
from monitor.depot.samples.formats.base import Value

noon = datetime(2026, 3, 1, 12, tzinfo=UTC)  # a Sunday
value = Value("total.seconds", noon, noon, 1.5, "seconds", "passed", 1)
assert b"".join(formats.load("gnuplot")("circle").chunks([value])) == b"# circle\\n1772366400.000000 1.5\\n"

import io

from monitor.imports import formats as imported

example = imported.load("durations").example
runs = list(imported.made("durations", {}).read(io.BytesIO(example.data + b"2006-02-27T14:00:00Z -1\\n")))
assert [run.seconds for run in runs[:2]] == [94.31, 93.77]
assert (runs[2].field, runs[2].where) == ("duration", "line 3")

from monitor.alerts import channels
from monitor.alerts.channels.base import Message

file = scratch / "alerts"
message = Message("1", "opened", "rule", "circle", "it failed", noon, noon)
channels.notifier({"kind": "file", "path": str(file)}).send(message)
assert file.read_text() == "[gridcast] alert: circle: it failed\\n"

import uuid

from monitor.ledger.admission.base import AdmissionContext, Demand, DueRun, Skip
from monitor.ledger.admission import rules

judge = rules.load_all()["weekend"]
run = DueRun(uuid.uuid4(), Demand("gather", "office", "home", frozenset({"anl"})), noon)
assert isinstance(judge(run, AdmissionContext(noon, [], {}, {})), Skip)
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with every example at the path that its first line names."""
    directory = tmp_path_factory.mktemp("planted")
    unwanted = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=unwanted)
        else:
            shutil.copy(source, directory / name)
    for path, code in EXAMPLES.items():
        assert not (directory / path).exists(), f"{path} exists: the example adds nothing"
        (directory / path).write_text(code.partition("\n")[2], encoding="utf-8")
    return directory


def run(directory: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    environment["DJANGO_SETTINGS_MODULE"] = "monitor.settings"
    return subprocess.run(
        [sys.executable, *argv], cwd=directory, capture_output=True, text=True, check=False, env=environment
    )


def test_the_page_has_an_example_for_every_kind_of_plug_in() -> None:
    folders = {str(Path(path).parent) for path in EXAMPLES}
    assert folders >= {
        "probes",
        "forecasting/methods",
        "reporters/transfers",
        "reporters/shells",
        "reporters/batch",
        "monitor/imports/formats",
        "monitor/depot/samples/formats",
        "monitor/alerts/channels",
        "monitor/alerts/conditions",
        "monitor/ledger/admission/rules",
    }


def test_the_contract_suites_find_the_examples_and_pass(planted: Path) -> None:
    suites = [f"tests/contracts/test_{kind}.py" for kind in ("probes", "forecasters", "conditions")]
    chosen = "knock or last_two or failures_in_ten"
    tested = run(
        planted, "-m", "pytest", *suites, "-k", chosen, "-q", "-p", "no:xdist", "-p", "no:cacheprovider"
    )
    assert tested.returncode == 0, tested.stdout
    passed = re.search(r"(\d+) passed", tested.stdout)
    assert passed is not None
    assert int(passed[1]) > 40


def test_the_other_examples_do_what_they_say(planted: Path) -> None:
    used = run(planted, "-W", "ignore", "-c", USE)
    assert used.returncode == 0, used.stderr


def test_an_added_field_of_a_series_is_a_column_and_a_key_of_the_grid_file(
    planted: Path, tmp_path: Path
) -> None:
    widened = tmp_path / "widened"
    shutil.copytree(planted, widened)
    section = TEXT.partition("## Add a field of a series")[2]
    additions = list(ADDITION.finditer(section.partition("```\n\n")[0]))
    assert len(additions) == 3
    for addition in additions:
        file = widened / addition["file"]
        source = file.read_text(encoding="utf-8")
        assert addition["before"] in source
        at = source.rindex(addition["before"])
        file.write_text(f"{source[:at]}{addition['added']}\n{source[at:]}", encoding="utf-8")
    migrated = run(widened, "-W", "ignore", "manage.py", "makemigrations", "--dry-run")
    assert "Add field contact to series" in migrated.stdout, migrated.stderr
    schema = run(widened, "-W", "ignore", "manage.py", "grid", "schema")
    assert '"contact"' in schema.stdout, schema.stderr
